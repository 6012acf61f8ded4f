import { afterAll, beforeAll, expect, test } from 'vitest';
import { personalData } from '../../src/contrib/personal/index.ts';
import { eraseSubject } from '../../src/crud/subjects/erase-subject.ts';
import { exportSubject } from '../../src/crud/subjects/export-subject.ts';
import { findErasure, requestErasure } from '../../src/db/subjects/erasure-state.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { unzip } from '../personal/unzip.ts';
import { type AuthApp, type Browser, member, startAuthApp } from './auth-app.ts';

describeDatabases('the data of users of better-auth', (database) => {
  let here: AuthApp;
  let ada: Browser;
  let bob: Browser;
  beforeAll(async () => {
    here = await startAuthApp(database.db, { modules: [personalData()] });
    [ada, bob] = [await member(here, 'ada@example.com'), await member(here, 'bob@example.com')];
    for (const [browser, name] of [
      [ada, 'north'],
      [bob, 'south'],
    ] as const)
      expect((await browser.post('/auth/organization/create', { name, slug: name })).status).toBe(200);
    expect((await bob.post('/auth/organization/invite-member', { email: 'ada@example.com', role: 'member' })).status).toBe(200);
    await ada.post('/v1/api-keys', { name: 'key of ada', scopes: [] });
  });
  afterAll(() => here.app.close());

  const subjectOf = async (email: string) => {
    const [row] = await database.db.query<{ id: string }>('select id from better_auth_users where email = $1', [email]);
    return { kind: 'person', id: row?.id ?? '' } as const;
  };
  const content = async () => {
    const names = [
      'user',
      'session',
      'account',
      'member',
      'invitation',
      'verification',
      'twoFactor',
      'api_keys',
      'better_auth_user_changes',
    ];
    const rows = await Promise.all(names.map(async (name) => [name, await database.db.query(`select * from "${name}"`)]));
    return JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  };

  test('are exported without secrets, and erased; another person keeps theirs', async () => {
    const { app } = here;
    const subject = await subjectOf('ada@example.com');
    const archive: Uint8Array[] = [];
    for await (const piece of exportSubject(app, subject)) archive.push(piece);
    const files = unzip(Buffer.concat(archive));
    expect([...files.keys()]).toEqual(
      expect.arrayContaining(['login/user.jsonl', 'login/session.jsonl', 'login/account.jsonl', 'login/member.jsonl', 'api_keys.jsonl']),
    );
    const text = [...files.values()].join('\n');
    expect(files.get('login/user.jsonl')).toContain('ada@example.com');
    expect(text).not.toContain('bob@example.com');
    const [secret] = await database.db.query<{ token: string; password: string }>(
      `select s."token" as token, a."password" as password from "session" s, "account" a where s."userId" = $1 and a."userId" = $1`,
      [subject.id],
    );
    expect(secret?.password).toContain('plain:');
    expect(text).not.toContain(secret?.token);
    expect(text).not.toContain(secret?.password);

    const { db } = app;
    const others = (await content()).split('bob@example.com').length;
    const { id } = await db.transaction((tx) => requestErasure(tx, subject, { dueAt: db.clock.now(), by: 'test' }));
    expect(await eraseSubject(app, id)).toBe('finished');
    expect(await findErasure(db, id)).toMatchObject({ state: 'finished', counts: { api_keys: { delete: 1 } } });
    const left = await content();
    expect(left).not.toContain('ada@example.com');
    expect(left.split('bob@example.com').length).toBe(others);
    expect((await ada.get('/v1/who')).status).toBe(401);
    expect((await bob.get('/v1/who')).status).toBe(200);
    expect((await subjectOf('ada@example.com')).id).toBe('');
  });
});
