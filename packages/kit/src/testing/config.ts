/** Where a project's own tests find a PostgreSQL server; without it they run on SQLite alone. */
export function testPostgresUrl(): string | undefined {
  const url = process.env['KIT_TEST_POSTGRES_URL'];
  return url === '' ? undefined : url;
}

/** Vitest sets it in the processes of its tests. */
export function runsInVitest(): boolean {
  return process.env['VITEST'] !== undefined;
}
