export { describeDatabases, type DescribeDatabasesOptions, type TestDatabase } from './databases.ts';
export { fakeClock, type FakeClock } from './fake-clock.ts';
export { sample, type SampleOptions } from './sample/sample.ts';
export { testApp, type LogRecord, type TestApp, type TestAppOptions } from './test-app.ts';
export { createPostgresDatabase, createSqliteDatabase, ensurePostgresTemplate, type DatabasePlace } from './test-database.ts';
