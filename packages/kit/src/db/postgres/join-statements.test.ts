import { expect, test } from 'vitest';
import { StatementJoiner } from './join-statements.ts';

const row = { text: 'with made as (insert into a (x) values ($1) returning x)\nselect x from made', rows: 1 } as const;
const entry = { text: 'insert into b (x, y) values ($2, $1)', rows: 0 } as const;
const event = {
  text: 'with event as (insert into c (x) values ($1))\nselect 1 as one from (select d\n  from d where x = $2) found',
  rows: 'any',
} as const;

test('changes are one WITH clause, selections one list, and every statement has its own parameters', () => {
  expect(new StatementJoiner().join([row, entry, event])).toEqual({
    text: `with made as (insert into a (x) values ($1) returning x),
change1 as (insert into b (x, y) values ($3, $2)),
event as (insert into c (x) values ($4))
select x from made
union all
select 1 as one from (select d
  from d where x = $5) found`,
    rows: 1,
  });
});

test('statements that select nothing are one that selects nothing', () => {
  const other = { text: 'insert into e (x) values ($1)', rows: 0 } as const;
  expect(new StatementJoiner().join([entry, other])).toEqual({
    text: `with change0 as (insert into b (x, y) values ($2, $1)),
change1 as (insert into e (x) values ($3))
select 1 where false`,
    rows: 0,
  });
});

test('one alone, too many, two with one name, and two of unknown numbers of rows stay apart', () => {
  const joiner = new StatementJoiner();
  const unknown = { ...event, text: event.text.replace('with event', 'with another') };
  for (const statements of [[], [row], [row, entry, event, entry, entry], [row, row], [row, event, unknown]])
    for (const _time of [1, 2]) expect(joiner.join(statements)).toBeUndefined();
});

test('the text of the same statements is made once', () => {
  const joiner = new StatementJoiner();
  expect(joiner.join([row, event])).toBe(joiner.join([{ ...row }, { ...event }]));
  expect(joiner.join([row, entry])).not.toBe(joiner.join([row, event]));
});
