import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { type AllowedChange, compareExchanges, type Difference, judge } from '../test/wire/compare.ts';
import type { RecordedExchange } from '../test/wire/exchange.ts';

// Compares two recordings of the same tests (KIT_RECORD=folder): what responses, statements and indexes a change has changed. Exits with 1 when
// there is a difference that test/wire/changes.json does not list with its reason.
//   node scripts/wire-diff.ts before after

const [before, after] = process.argv.slice(2);
if (before === undefined || after === undefined) {
  console.error('usage: node scripts/wire-diff.ts BEFORE AFTER\nBoth are folders that tests wrote with KIT_RECORD=folder.');
  process.exit(2);
}
for (const folder of [before, after])
  if (!existsSync(folder)) {
    console.error(`There is no folder ${folder}. Run the tests with KIT_RECORD=${folder} first.`);
    process.exit(2);
  }

const allowed = JSON.parse(readFileSync(resolve(import.meta.dirname, '../test/wire/changes.json'), 'utf8')) as AllowedChange[];
const files = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
const shared = files(before).filter((name) => files(after).includes(name));
const all = new Map<string, Difference>();
for (const file of shared)
  for (const { text, tests } of compareExchanges(read(join(before, file)), read(join(after, file))))
    all.set(text, { text, tests: [...(all.get(text)?.tests ?? []), ...tests] });

const { unexpected, unused } = judge([...all.values()], allowed);
for (const { text, tests } of unexpected)
  console.log(`${text}\n    ${tests.length} ${tests.length === 1 ? 'test' : 'tests'}, such as ${tests[0]}`);
const onlyOne = [...files(before), ...files(after)].filter((name) => !shared.includes(name));
if (onlyOne.length > 0) console.log(`Recorded on one side only: ${onlyOne.join(', ')}`);
for (const { difference } of unused) console.log(`Nothing shows the listed change any more: ${difference}`);
console.log(`${shared.length} files, ${all.size - unexpected.length} differences that are listed, ${unexpected.length} that are not.`);
process.exitCode = unexpected.length > 0 ? 1 : 0;

function read(file: string): RecordedExchange[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedExchange);
}
