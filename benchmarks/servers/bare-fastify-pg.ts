// The least that an API on PostgreSQL starts: Fastify, a pool, one route that reads. It prints its URL when it listens.
import { fastify } from 'fastify';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
const server = fastify();
server.get('/health/ready', async () => (await pool.query('select 1 as ok')).rows[0] as object);
await pool.query('select 1');
process.stdout.write(`listens on ${await server.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) })}\n`);
process.once('SIGTERM', () => process.exit(0));
