import type { AdminFilter, AdminFilterOperator } from './shapes.ts';

/** The names that a filter travels under, and what each means. */
export function adminFilterNames({ name, operators, ends }: AdminFilter): ReadonlyMap<string, AdminFilterOperator | 'from' | 'to'> {
  const given = operators ?? (ends === undefined ? (['is'] as const) : []);
  const named = given.map((operator) => [operator === 'is' ? name : `${name}.${operator}`, operator] as const);
  const bounds = ends === undefined ? [] : [[ends[0], 'from'] as const, [ends[1], 'to'] as const];
  return new Map([...bounds, ...named]);
}
