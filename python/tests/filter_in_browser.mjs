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
// The main results are first, constant columns are one line, the picture has points of chosen columns, and a row is a job.
const [columns, same, options] = await tab.evaluate(() => [Array.from(document.querySelectorAll('th button'), one => one.textContent),
  document.getElementById('same').textContent, Array.from(document.querySelectorAll('#x option'), one => one.textContent)]);
if (columns[0] !== 'step_time_ms' || !columns.includes('gpus') || columns.includes('platform')) problems.push(`columns ${columns}`);
if (!same.includes('platform dgx-h100')) problems.push(`same in all rows: "${same}"`);
if (!options.includes('mbs') || options.includes('model')) problems.push(`columns to draw: ${options}`);
await tab.evaluate(() => { document.getElementById('filter').value = ''; });
await tab.select('#x', await tab.$$eval('#x option', all => all.find(one => one.textContent === 'mbs').value));
const drawn = await tab.evaluate(() => [document.querySelectorAll('svg circle').length, document.querySelector('svg').getAttribute('aria-label')]);
if (drawn[0] < 1000 || !drawn[1].startsWith('step_time_ms against mbs')) problems.push(`picture: ${drawn}`);
await tab.setViewport({width: 390, height: 844});
const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
if (wide > 390) problems.push(`a phone: ${wide} pixels wide`);
await Promise.all([tab.waitForNavigation(), tab.click('tbody td:nth-child(3)')]);
await tab.waitForFunction(() => document.body.dataset.busy === '');
const job = await tab.$eval('#command', one => one.value);
if (!/^stepcast predict .*--platform=dgx-h100/.test(job) || !job.includes('--gpus=')) problems.push(`a row: ${job}`);
await browser.close();
for (const problem of problems) console.error(problem);
took.sort((a, b) => a - b);
console.log(`filtered and sorted ${took.length} times, ${problems.length} problems; median ${took[took.length >> 1].toFixed(1)} ms, p95 ${took[Math.floor(took.length * 0.95)].toFixed(1)} ms`);
process.exit(problems.length ? 1 : 0);
