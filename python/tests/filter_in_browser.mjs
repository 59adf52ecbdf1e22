// Filters and sorts the page of a sweep in a real browser: node filter_in_browser.mjs ADDRESS WORDS=COUNT...
// Prints how long it takes from an input to rows that are laid out. Exit code 77: nothing to test with.
import {open, unreadable} from './browser.mjs';
const {browser, tab, problems} = await open();
const [address, ...cases] = process.argv.slice(2), took = [];
await tab.goto(address, {waitUntil: 'load'});
await tab.waitForFunction(() => document.body.dataset.found !== undefined, {timeout: 120000});
const look = () => tab.evaluate(() => [Number(document.body.dataset.found), Number(document.body.dataset.took)]);
for (let round = 0; round < 10; ++round) {
  for (const one of cases) {
    const at = one.lastIndexOf(':'), words = one.slice(0, at), count = Number(one.slice(at + 1));
    await tab.evaluate(value => {
      document.getElementById('filter').value = value;
      document.getElementById('filter').dispatchEvent(new Event('input'));
    }, words);
    const [found, ms] = await look();
    took.push(ms);
    if (found !== count) problems.push(`"${words}": found ${found} rows, expected ${count}`);
  }
  await tab.$$eval('th button', (buttons, number) => buttons[number % buttons.length].click(), round);
  took.push((await look())[1]);
}
problems.push(...await unreadable(tab));
await browser.close();
for (const problem of problems) console.error(problem);
took.sort((a, b) => a - b);
console.log(`filtered and sorted ${took.length} times, ${problems.length} problems; median ${took[took.length >> 1].toFixed(1)} ms, p95 ${took[Math.floor(took.length * 0.95)].toFixed(1)} ms`);
process.exit(problems.length ? 1 : 0);
