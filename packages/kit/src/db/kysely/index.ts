export { kyselyOf } from './kysely-of.ts';
export type { Tables } from './tables.ts';
export { whereExpression } from './where-expression.ts';
