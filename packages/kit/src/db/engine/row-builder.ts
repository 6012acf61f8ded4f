export type RowBuilder<V = unknown, R = unknown> = (values: readonly V[]) => R;

/**
 * Rows are read as arrays and turned into objects by a function written for their columns: one hidden class per statement, as fast as a native
 * driver. Names go through JSON.stringify, in computed form where `__proto__` would not be data: `(v) => ({"id":v[0],"total":v[1]===null?null:d[1](v[1])})`.
 */
export function rowBuilder<V, R>(
  names: readonly string[],
  decoders: readonly (((value: never) => unknown) | undefined)[],
): RowBuilder<V, R> {
  const members = names.map((name, index) => {
    const value = decoders[index] === undefined ? `v[${index}]` : `v[${index}]===null?null:d[${index}](v[${index}])`;
    return `${name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)}:${value}`;
  });
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the source is built from quoted column names and indexes only
  return new Function('d', `return (v) => ({${members.join(',')}})`)(decoders) as RowBuilder<V, R>;
}
