// The recorded answers of the first page: node first_page_in_browser.mjs ADDRESS EXPECTED.json, {"model/platform/gpus": step_ms...}.
import fs from 'node:fs';
import {open} from './browser.mjs';

const [address, file] = process.argv.slice(2), {browser, tab, problems} = await open();
await tab.goto(address, {waitUntil: 'load'});
await tab.waitForFunction(() => document.getElementById('forecast').dataset.step, {timeout: 20000});
for (const [key, step] of Object.entries(JSON.parse(fs.readFileSync(file, 'utf8')))) {
  const found = await tab.evaluate(values => {
    const selects = Array.from(document.querySelectorAll('#forecast select'));
    selects.forEach((select, i) => { select.value = values[i]; });
    selects[0].dispatchEvent(new Event('change'));
    return Number(document.getElementById('forecast').dataset.step);
  }, key.split('/'));
  if (found !== step) problems.push(`${key}: found ${found}, expected ${step}`);
}
await browser.close();
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
