export { backfill, type Backfill } from './backfills/backfill.ts';
export { currentTransaction } from './engine/ambient.ts';
export type { Clock } from './clock.ts';
export { type Column, t, type AnyColumn, type ColumnSettings, type Guarded } from './declare/column.ts';
export { isUniqueViolation } from './engine/constraint-violation.ts';
export type { Database, Db } from './engine/db.ts';
export type { Dialect } from './dialect.ts';
export { json } from './values/json-parameter.ts';
export type { Encrypted } from './declare/encrypted-column.ts';
export { reveal } from './rows/reveal.ts';
export { countUpTo } from './rows/count-rows.ts';
export { checkDrift, type Drift } from './migrations/drift.ts';
export { migrate, pendingMigrations, type MigrationReport } from './migrations/migrate.ts';
export { migration, type Migration } from './migrations/migration.ts';
export {
  addCheck,
  addColumn,
  alterColumn,
  code,
  createFullText,
  createIndex,
  createTable,
  dropCheck,
  dropColumn,
  dropFullText,
  dropIndex,
  dropTable,
  renameColumn,
  renameTable,
  sql,
  type Operation,
} from './migrations/operation.ts';
export type { MigrationModule } from './migrations/plan.ts';
export { proposeModuleMigration } from './migrations/propose-migration.ts';
export { model, type Model } from './declare/model.ts';
export { openDatabase } from './open/open-database.ts';
export { countQueries, observeQueries, type QueryEvent } from './engine/query-observer.ts';
export { count, find, findBy, insert, insertMany, list, remove, update, type Key } from './rows/repository.ts';
export type { Columns, Input, Insert, Patch, Row, RowOf, Update } from './declare/rows.ts';
export { softDelete, softDeleteUnique, timestamps, userStamps, versioned } from './declare/standard-columns.ts';
export type { ColumnDefinition, TableDefinition } from './declare/table-definition.ts';
export type { ModelOptions } from './declare/table-from-columns.ts';
export { uuidv7 } from './values/uuidv7.ts';
export { runBackfills } from './rollout/run-backfills.ts';
export { compileWhere } from './sql/where/compile-where.ts';
export { whereSql } from './sql/where/where-sql.ts';
export type { Where } from './sql/where/where.ts';
export { tableStatements } from './sql/ddl.ts';
