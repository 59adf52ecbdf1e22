// Moves sliders of the page of `stepcast serve`: node slide_in_browser.mjs ADDRESS RUNS COMMAND
// Prints median and p95 from a move to bars that are painted. Exit code 77: nothing to test with.
import {open} from './browser.mjs';

const [address, runs, command] = process.argv.slice(2), {browser, tab, problems} = await open(), took = [];
const ready = () => tab.waitForFunction(() => document.body.dataset.busy === '', {timeout: 20000, polling: 5});
await tab.goto(`${address}#${encodeURIComponent(command)}`, {waitUntil: 'load'});
await ready();
for (let i = 0; i < Number(runs); ++i) {
  const part = ['network', 'memory_bound', 'compute', 'host'][i % 4], exponent = -2 + 0.25 * ((i >> 2) % 20);
  await tab.evaluate((id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event('input'));
  }, 'x-' + part, exponent);
  await ready();
  took.push(await tab.evaluate(() => Number(document.body.dataset.took)));
}
await browser.close();
for (const problem of problems) console.error(problem);
took.sort((a, b) => a - b);
console.log(`${took.length} moves, median ${took[took.length >> 1].toFixed(0)} ms, p95 ${took[Math.floor(took.length * 0.95)].toFixed(0)} ms`);
process.exit(problems.length ? 1 : 0);
