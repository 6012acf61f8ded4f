export { describeDatabases, type DescribeDatabasesOptions, type TestDatabase } from './databases.ts';
export { expectQueries } from './expect-queries.ts';
export { crudTests, type CrudTestsOptions } from './crud/crud-tests.ts';
export { fakeClock, type FakeClock } from './fake-clock.ts';
export { sample, type SampleOptions } from './sample/sample.ts';
export { s3Double, type S3Double, type S3DoubleOptions, type S3Fault } from './s3/s3-double.ts';
export { testApp, type LogRecord, type TestApp, type TestAppOptions } from './test-app.ts';
export type { AsOptions, TestClient, TestUser } from './test-callers.ts';
export { createPostgresDatabase, createSqliteDatabase, ensurePostgresTemplate, type DatabasePlace } from './test-database.ts';
