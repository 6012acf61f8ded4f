import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Dialect } from '../db/dialect.ts';

/** A real, empty database that exists for a test and is gone afterwards. */
export interface DatabasePlace {
  readonly dialect: Dialect;
  readonly url: string;
  remove(): Promise<void>;
}

/** A SQLite file in a temporary folder. */
export async function createSqliteDatabase(): Promise<DatabasePlace> {
  const folder = await mkdtemp(join(tmpdir(), 'kit-test-'));
  return { dialect: 'sqlite', url: `sqlite:${join(folder, 'test.db')}`, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * A database of its own on the given server, cloned from `template` (about 30 ms; a template that was migrated once
 * saves migrating every test). The name is random, so files and runs on one server never meet.
 */
export async function createPostgresDatabase(serverUrl: string, template = 'template0'): Promise<DatabasePlace> {
  const name = `kit_test_${randomBytes(8).toString('hex')}`;
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await onServer(serverUrl, `create database "${name}" template "${template.replaceAll('"', '""')}"`);
  return { dialect: 'postgres', url: url.href, remove: () => onServer(serverUrl, `drop database if exists "${name}" with (force)`) };
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
