export { currentTransaction } from './ambient.ts';
export { systemClock, type Clock } from './clock.ts';
export { Column, t, type AnyColumn, type ColumnSettings } from './column.ts';
export { constraintFault } from './constraint-fault.ts';
export { constraintViolation, isUniqueViolation, type ConstraintViolation } from './constraint-violation.ts';
export type { DatabaseObserver, PoolStatus } from './database-observer.ts';
export type { AnyTables, Database, Db, ExecuteResult } from './db.ts';
export { tableStatements } from './ddl.ts';
export type { Dialect } from './dialect.ts';
export type { ListenOptions, NotificationListener, QueryOptions, StreamOptions, TransactionOptions } from './engine.ts';
export { dbErrors } from './errors.ts';
export { json, JsonParameter } from './json-parameter.ts';
export { countUpTo, estimateCount, type CountSource } from './keyset/count-rows.ts';
export { Cursors, type CursorContent } from './keyset/cursor.ts';
export { Keyset, keysetOf, keysetPage, type KeysetColumn, type KeysetPage, type KeysetPosition } from './keyset/keyset.ts';
export type { DbLog } from './log.ts';
export { checkDrift, modelDrift, type Drift } from './migrations/drift.ts';
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
export { planMigrations, type MigrationModule, type MigrationPlan } from './migrations/plan.ts';
export { proposeMigration, proposeModuleMigration, type ProposedMigration } from './migrations/propose-migration.ts';
export type { SchemaState } from './migrations/schema-state.ts';
export { model, type Model } from './model.ts';
export { modelFaults } from './model-faults.ts';
export { openDatabase, type DatabaseOptions } from './open-database.ts';
export { containsSql, orderSql, startsWithSql } from './portable-sql.ts';
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
export type { Columns, Input, Insert, Patch, Row, Tables, Update } from './rows.ts';
export { installationId, secretOf } from './secrets.ts';
export { softDelete, softDeleteUnique, timestamps, userStamps, versioned } from './standard-columns.ts';
export type { SqlText } from './sql-text.ts';
export type { ColumnDefinition, ColumnKind, FullTextDefinition, IndexDefinition, OnDelete, TableDefinition } from './table-definition.ts';
export type { ModelFullText, ModelIndex, ModelOptions } from './table-from-columns.ts';
export { uuidv7 } from './uuidv7.ts';
export { compileWhere, type CompiledWhere } from './where/compile-where.ts';
export { operatorsOf, type WhereOperator } from './where/operators.ts';
export { whereExpression } from './where/where-expression.ts';
export { whereSql, type WhereSql } from './where/where-sql.ts';
export type { Where, WhereRelation, WhereRelations } from './where/where.ts';
export { sql as sqlFragment } from 'kysely';
