import { expect, test } from 'vitest';
import { model, t } from '../../index.ts';
import { compileWhere } from './compile-where.ts';

const passes = model('passes', {
  id: t.uuidv7().pk(),
  title: t.text(80),
  level: t.int(),
  day: t.date(),
  from_at: t.timestamp(),
  until_at: t.timestamp(),
});
const [first, later] = [new Date('2030-01-01T00:00:00.123Z'), new Date('2030-01-02T05:00:00.112Z')] as const;
const HOUR = 3_600_000;
const before = (now: Date, ms: number) => new Date(now.getTime() - ms);

// oxlint-disable-next-line typescript/no-explicit-any -- conditions of any shape
type Rule = (now: Date) => any;
const moving = (rule: Rule) => compileWhere(passes, rule(first)).moving(first, compileWhere(passes, rule(later)), later);

test.each<[string, Rule, string[]]>([
  ['a column compared with now', (now) => ({ until_at: { gt: now } }), ['until_at 0']],
  ['a column compared with a time before now', (now) => ({ from_at: { lte: before(now, HOUR) } }), [`from_at ${-HOUR}`]],
  [
    'conditions beside others, in any place',
    (now) => ({ level: 1, or: [{ until_at: null }, { not: { until_at: { lt: now } } }, { and: [{ from_at: { gte: before(now, -5) } }] }] }),
    ['until_at 0', 'from_at 5'],
  ],
  [
    'the same column twice',
    (now) => ({ and: [{ until_at: { gt: now } }, { until_at: { lt: before(now, -HOUR) } }] }),
    ['until_at 0', `until_at ${HOUR}`],
  ],
  ['a time that does not move', () => ({ until_at: { gt: first } }), []],
  ['no time', () => ({ title: 'x' }), []],
])('%s: what is compared with the time is known', (_name, rule, bounds) => {
  expect(moving(rule)?.bounds.map(({ column, offsetMs }) => `${column.name} ${offsetMs}`)).toEqual(bounds);
});

test.each<[string, Rule]>([
  ['a time that is rounded', (now) => ({ until_at: { gt: new Date(Math.floor(now.getTime() / HOUR) * HOUR) } })],
  ['a time rounded to seconds', (now) => ({ until_at: { gt: new Date(Math.floor(now.getTime() / 1000) * 1000) } })],
  ['a time that goes twice as fast', (now) => ({ until_at: { gt: new Date(now.getTime() * 2) } })],
  ['equality with now', (now) => ({ until_at: now })],
  ['inequality with now', (now) => ({ until_at: { ne: now } })],
  ['one of some times', (now) => ({ until_at: { in: [now] } })],
  ['a day', (now) => ({ day: { lt: now.toISOString().slice(0, 10) } })],
  ['another value that differs', (now) => ({ level: now.getUTCDate() })],
  ['another condition', (now) => (now === first ? { level: 1 } : { title: 'x' })],
  ['nothing, later', (now) => (now === first ? { level: 1 } : false)],
])('%s is not followed', (_name, rule) => {
  expect(moving(rule)).toBeUndefined();
});

const row = { id: 'x', title: 'x', level: 1, day: '2030-01-01', from_at: before(first, HOUR), until_at: first };

test.each<[string, Rule]>([
  ['gt', (now) => ({ until_at: { gt: now } })],
  ['gte', (now) => ({ until_at: { gte: now } })],
  ['lt', (now) => ({ until_at: { lt: now } })],
  ['lte', (now) => ({ until_at: { lte: now } })],
  ['between', (now) => ({ from_at: { lt: before(now, HOUR) }, not: { until_at: { lt: before(now, 2 * HOUR) } } })],
])('%s at any time is what the rule says then', (_name, rule) => {
  const followed = moving(rule);
  for (const ms of [-3 * HOUR, -HOUR, -1, 0, 1, HOUR, 2 * HOUR - 1, 2 * HOUR, 2 * HOUR + 1, 3 * HOUR]) {
    const time = new Date(first.getTime() + ms);
    const compiled = compileWhere(passes, rule(time));
    expect(followed?.at(time).matches(row)).toBe(compiled.matches(row));
    expect(followed?.at(time).values('postgres')).toEqual(compiled.values('postgres'));
    expect(followed?.at(time).shape).toBe(compiled.shape);
  }
});
