import type { SqliteDecoder } from './codec.ts';

export type RowBuilder = (values: unknown[]) => unknown;

/**
 * Rows are read as arrays and turned into objects by a function written for their columns: one hidden class per
 * statement, as fast as a native driver. Names go through JSON.stringify, in computed form so that `__proto__` is data.
 */
export function rowBuilder(names: readonly string[], decoders: readonly (SqliteDecoder | undefined)[]): RowBuilder {
  const members = names.map((name, index) => {
    const value = decoders[index] === undefined ? `v[${index}]` : `v[${index}]===null?null:d[${index}](v[${index}])`;
    return `${name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)}:${value}`;
  });
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the source is built from quoted column names and indexes only
  return new Function('d', `return (v) => ({${members.join(',')}})`)(decoders) as RowBuilder;
}
