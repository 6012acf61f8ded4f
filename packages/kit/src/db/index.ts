export { currentTransaction } from './ambient.ts';
export { type Clock } from './clock.ts';
export { type Column, t, type AnyColumn, type ColumnSettings, type Guarded } from './column.ts';
export { isUniqueViolation } from './constraint-violation.ts';
export type { DatabaseObserver } from './database-observer.ts';
export type { Database, Db } from './db.ts';
export type { Dialect } from './dialect.ts';
export type { QueryOptions, StreamOptions, TransactionOptions } from './engine.ts';
export { json } from './json-parameter.ts';
export { countUpTo } from './keyset/count-rows.ts';
export { checkDrift, type Drift } from './migrations/drift.ts';
export { migrate, pendingMigrations, type MigrateOptions, type MigrationReport } from './migrations/migrate.ts';
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
export { type MigrationModule } from './migrations/plan.ts';
export { proposeModuleMigration } from './migrations/propose-migration.ts';
export { model, type Model } from './model.ts';
export { openDatabase, type DatabaseOptions } from './open-database.ts';
export { countQueries, observeQueries, type CountedQueries, type QueryEvent, type QueryObserver } from './query-observer.ts';
export {
  count,
  find,
  findBy,
  insert,
  insertMany,
  list,
  remove,
  update,
  type FindOptions,
  type Key,
  type ListOptions,
} from './repository.ts';
export type { Columns, Input, Insert, Patch, Row, RowOf, Update } from './rows.ts';
export { softDelete, softDeleteUnique, timestamps, userStamps, versioned } from './standard-columns.ts';
export type { ColumnDefinition, FullTextDefinition, IndexDefinition, OnDelete, TableDefinition } from './table-definition.ts';
export type { ModelFullText, ModelIndex, ModelOptions } from './table-from-columns.ts';
export { uuidv7 } from './uuidv7.ts';
export { compileWhere } from './where/compile-where.ts';
export { whereSql } from './where/where-sql.ts';
export type { Where } from './where/where.ts';
export { tableStatements } from './ddl.ts';
