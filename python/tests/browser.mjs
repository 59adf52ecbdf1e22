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
  const browser = await puppeteer.launch({executablePath, headless: true, timeout: 120000, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run']});
  const tab = await browser.newPage(), problems = [];
  tab.setDefaultTimeout(120000);
  tab.on('console', message => { if (!/status of (4\d\d|503)/.test(message.text())) problems.push(`console: ${message.text()}`); });
  tab.on('pageerror', error => problems.push(`script: ${error.message}`));
  tab.on('request', request => { if (!/^(http:\/\/127\.0\.0\.1|data:|blob:|about:)/.test(request.url())) problems.push(`requests ${request.url()}`); });
  return {browser, tab, problems};
};

// What axe-core finds in a tab and in the frames that it shows, light and dark; nothing where it is not installed.
export const unreadable = async tab => {
  let axe;
  try {
    axe = fs.readFileSync(require.resolve('axe-core/axe.min.js', {paths: [process.cwd(), ...(process.env.NODE_PATH || '').split(':').filter(Boolean)]}), 'utf8');
  } catch { return []; }
  const found = [];
  for (const scheme of ['light', 'dark']) {
    await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
    for (const frame of tab.frames()) {
      await frame.evaluate(() => { for (const one of document.querySelectorAll('details')) one.open = true; });
      await frame.evaluate(axe);
      for (const one of await frame.evaluate(async () => (await window.axe.run(document, {iframes: false, resultTypes: ['violations']})).violations
        .map(one => `${one.impact}: ${one.id}, ${one.nodes.length} times: ${one.nodes[0].html.slice(0, 120)}`))) found.push(`${scheme}: ${one}`);
    }
  }
  return found;
};
