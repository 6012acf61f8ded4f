import { describe, expect, test } from 'vitest';
import { compareValues } from '../../db/declare/comparable.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import type { MetricKind } from '../declare/metric.ts';
import { valueOf } from './stats-sql.ts';
import { metricPlan } from './stats-sql.ts';

/** What both databases answer for a sum and the number of rows that it is of; SQLite adds the digits nine by nine. */
const read = {
  postgres: (sum: string, rows: string) => [sum, rows],
  sqlite: (sum: string, rows: string) => ['0', sum, rows],
};

describe.each(['postgres', 'sqlite'] as const)('the order of statistics (%s)', (dialect) => {
  const column = { kind: 'bigint', nullable: false } as ColumnDefinition;
  const inOrder = (kind: MetricKind, answers: readonly string[][]) => {
    const { value } = metricPlan(kind, 'x', column, dialect);
    const comparable = valueOf(column);
    return answers.map((each) => value(each)).toSorted((a, b) => compareValues(comparable(a), comparable(b)));
  };

  test('means of bigints may be smaller than a millionth, and of either sign', () => {
    const means = [
      ['1', '3'],
      ['-1', '10000000'],
      ['1', '10000000'],
      ['7', '1'],
      ['-3', '2'],
      ['0', '5'],
      ['1', '20000000'],
    ].map(([sum = '', rows = '']) => read[dialect](sum, rows));
    expect(inOrder('avg', means)).toEqual([-1.5, -1e-7, 0, 5e-8, 1e-7, 1 / 3, 7]);
  });

  test('sums of bigints are compared by every digit', () => {
    const sums = ['900719925474099300', '900719925474099301', '-1'].map((sum) =>
      dialect === 'postgres' ? [sum, '1'] : [String(BigInt(sum) / 1_000_000_000n), String(BigInt(sum) % 1_000_000_000n), '1'],
    );
    expect(inOrder('sum', sums.toReversed())).toEqual(['-1', '900719925474099300', '900719925474099301']);
  });
});
