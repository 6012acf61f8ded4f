import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';

export const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
// A connection that breaks while it is idle ends the process unless somebody listens.
pool.on('error', () => undefined);
export const db = drizzle({ client: pool });
export type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0];
