// Asks `stepcast serve` in a real browser a hundred times, each with a number that has to come out:
//
//   node serve_in_browser.mjs ADDRESS EXPECTED.json
//
// EXPECTED holds {"fields": [[{"gpus": "16", ...}, step_ms]...], "sliders": [["network", exponent, step_ms]...],
// "keys": [["gpus", "ArrowUp", step_ms]...]}.
// Prints how long new bars take, from an input to the answer on the page: median and p95. Exit code 77: nothing to test with.
import fs from 'node:fs';
import {open, unreadable} from './browser.mjs';

const [address, file] = process.argv.slice(2), expected = JSON.parse(fs.readFileSync(file, 'utf8')), took = [];
const {browser, tab, problems} = await open();
const ready = () => tab.waitForFunction(() => document.body.dataset.busy === '', {timeout: 120000, polling: 5});
const shown = () => tab.evaluate(() => [Number(document.body.dataset.step), Number(document.body.dataset.took)]);
const check = async (what, step) => {
  await ready();
  const [found, ms] = await shown();
  took.push(ms);
  if (found !== step) problems.push(`${what}: found ${found}, expected ${step}`);
  // Headlines are in s, ms or us, with three digits at least.
  const seen = await inside(page => {
    const [number, unit] = page.querySelector('.figures b').textContent.split(' ');
    return Number(number.replace(/,/g, '')) * {s: 1e3, ms: 1, us: 1e-3}[unit];
  });
  if (!(Math.abs(seen / step - 1) <= 5e-3)) problems.push(`${what}: shows ${seen}, expected ${step}`);
};
const inside = asked => tab.evaluate(`(${asked})(document.querySelector('iframe').contentDocument)`);
await tab.goto(address, {waitUntil: 'load'});
await ready();
await inside(page => { page.querySelector('details').open = true; });
for (const [fields, step] of expected.fields) {
  await tab.evaluate(values => {
    for (const [id, value] of Object.entries(values)) {
      document.getElementById(id).value = value;
      document.getElementById(id).dispatchEvent(new Event('change'));
    }
  }, fields);
  await check(JSON.stringify(fields), step);
}
for (const [part, exponent, step] of expected.sliders) {
  await tab.evaluate((id, value) => {
    document.getElementById('x-' + id).value = value;
    document.getElementById('x-' + id).dispatchEvent(new Event('input'));
  }, part, exponent);
  await check(`${part} 2^${exponent}`, step);
}
for (const [id, key, step] of expected.keys) {
  await tab.focus('#' + id);
  await tab.keyboard.press(key);
  await check(`${id} ${key}`, step);
}
// What is unfolded stays so; parts that stay have their tools once.
const [unfolded, tips, doubled] = await inside(page => [page.querySelector('details').open, page.querySelectorAll('.tip').length,
  page.querySelectorAll('.table-tools + .table-tools, .schedule + p.small + p.small').length]);
if (!unfolded || tips !== 1 || doubled !== 0) problems.push(`after all changes: unfolded ${unfolded}, ${tips} tips, ${doubled} tools twice`);
// The address holds the whole question, and the command line on the page is that question.
const [step] = await shown(), other = await browser.newPage();
await other.goto(tab.url(), {waitUntil: 'load'});
await other.waitForFunction(() => document.body.dataset.busy === '', {timeout: 120000});
const [again, line, mine] = [await other.evaluate(() => Number(document.body.dataset.step)), await other.$eval('#command', one => one.value), await tab.$eval('#command', one => one.value)];
if (again !== step || line !== mine) problems.push(`another browser shows ${again} of "${line}", expected ${step} of "${mine}"`);
problems.push(...await unreadable(tab));
// A wrong question is one line on the page, and the old answer is dimmed.
await tab.$eval('#command', one => { one.value = 'stepcast predict --model no-such-model --gpus 8'; one.dispatchEvent(new Event('change')); });
await ready();
const said = await tab.$eval('#said', one => [one.className, one.textContent]);
if (said[0] !== 'error' || !said[1].includes('no-such-model')) problems.push(`a model that is none: "${said}"`);
await browser.close();
for (const problem of problems) console.error(problem);
took.sort((a, b) => a - b);
console.log(`${took.length} interactions, ${problems.length} problems; new bars after ${took[took.length >> 1].toFixed(0)} ms, p95 ${took[Math.floor(took.length * 0.95)].toFixed(0)} ms`);
process.exit(problems.length ? 1 : 0);
