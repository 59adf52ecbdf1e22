// A tab of Chromium that notes what a page must not do: write to the console, fail, ask others. Exit code 77: nothing to test with.
import fs from 'node:fs';
import {createRequire} from 'node:module';
const require = createRequire(import.meta.url);
let puppeteer;
try {
  const module = require.resolve('puppeteer-core', {paths: [process.cwd(), ...(process.env.NODE_PATH || '').split(':').filter(Boolean)]});
  puppeteer = require(module).default ?? require(module);
} catch { console.log('skipped: no puppeteer-core'); process.exit(77); }
const executablePath = [process.env.STEPCAST_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(file => file && fs.existsSync(file));
if (!executablePath) { console.log('skipped: no Chromium'); process.exit(77); }


export const open = async () => {
  const browser = await puppeteer.launch({executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']});
  const tab = await browser.newPage(), problems = [];
  tab.on('console', message => { if (!/status of 4\d\d/.test(message.text())) problems.push(`console: ${message.text()}`); });
  tab.on('pageerror', error => problems.push(`script: ${error.message}`));
  tab.on('request', request => { if (!/^(http:\/\/127\.0\.0\.1|data:|blob:|about:)/.test(request.url())) problems.push(`requests ${request.url()}`); });
  return {browser, tab, problems};
};
