import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { describeDatabases } from '../../src/testing/databases.ts';
import { makeAdmin, ORIGIN, userId } from './auth-app.ts';

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

/** A client with cookies, over the network. */
class Client {
  cookie = '';

  async call(url: string, body?: object, headers: Record<string, string> = {}): Promise<{ status: number; body: Record<string, never> }> {
    const response = await fetch(url, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      redirect: 'manual',
      headers: { origin: ORIGIN, cookie: this.cookie, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    });
    const set = response.headers.getSetCookie().map((line) => line.split(';', 1)[0]);
    if (set.length > 0) this.cookie = set.join('; ');
    const text = await response.text();
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : {} };
  }
}

describeDatabases('two processes with better-auth', (database) => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  const serve = async (): Promise<Server> => {
    const child = spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, 'serve-auth.ts'), database.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    children.push(child);
    const url = await new Promise<string>((done, failed) => {
      child.once('exit', (code) => failed(new Error(`the server exited with ${code}`)));
      child.stdout.once('data', (chunk: Buffer) => done(chunk.toString().trim()));
    });
    return { url, child };
  };
  const password = 'correct horse battery';
  const member = async ({ url }: Server, name: string): Promise<Client> => {
    const client = new Client();
    const email = `${name}@example.com`;
    expect((await client.call(`${url}/auth/sign-up/email`, { email, password, name })).status).toBe(200);
    // The link of the mail is in the other process.
    await database.db.query('update "user" set "emailVerified" = $1 where "email" = $2', [database.dialect === 'sqlite' ? 1 : true, email]);
    expect((await client.call(`${url}/auth/sign-in/email`, { email, password })).status).toBe(200);
    return client;
  };

  test('a ban in one is in force in the other, and a process that is killed leaves nothing half done', { timeout: 300_000 }, async () => {
    const here = await serve();
    const there = await serve();
    const ada = await member(here, 'ada');
    const boss = await member(there, 'boss');
    const gone = await member(here, 'gone');
    await makeAdmin(database.db, 'boss@example.com');
    const { body } = await gone.call(`${here.url}/v1/api-keys`, { name: 'script', scopes: [] });
    const key = { 'x-api-key': String(body['key']) };
    for (const { url } of [here, there]) {
      expect((await ada.call(`${url}/v1/who`)).status).toBe(200);
      expect((await new Client().call(`${url}/v1/who`, undefined, key)).status).toBe(200);
    }
    expect((await boss.call(`${there.url}/auth/admin/ban-user`, { userId: await userId(database.db, 'ada@example.com') })).status).toBe(
      200,
    );
    for (const { url } of [here, there]) expect((await ada.call(`${url}/v1/who`)).status).toBe(401);

    // The user is deleted by a statement, as by a process that ended before its hook ran.
    const id = await userId(database.db, 'gone@example.com');
    here.child.kill('SIGKILL');
    await database.db.query('delete from "user" where "id" = $1', [id]);
    expect((await new Client().call(`${there.url}/v1/who`, undefined, key)).status).toBe(401);
    expect(await database.db.query('select id from api_keys where owner_id = $1', [id])).toHaveLength(1);
    await serve();
    expect(await database.db.query('select id from api_keys where owner_id = $1', [id])).toEqual([]);
    expect((await boss.call(`${there.url}/v1/who/staff`)).status).toBe(200);
  });
});
