import { wholeDocument } from '../../../test/whole-document.ts';
import { Command } from 'commander';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Person, ShopApp } from '../../../test/crud/shop.ts';
import { people } from '../../../test/crud/shop.ts';
import { startLedger, steps } from '../../../test/idempotency/ledger.ts';
import { RawConnection } from '../../../test/raw-http.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import { idempotencyCommand } from '../../cli/commands/idempotency.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { allowAny, isAuthenticated } from '../../permissions/index.ts';
import { Controller } from '../compile/controller.ts';
import { raw } from '../declare/raw.ts';
import { route } from '../declare/route.ts';
import { type Claim, claimKey, completeClaim, listRecords, prolongClaim, releaseClaim } from './record-store.ts';

const HOUR_MS = 3_600_000;
const clock = fakeClock(new Date());
let made = 0;
const newKey = () => `key-${(made += 1)}-${Math.random()}`;

describeDatabases(
  'requests with an idempotency key',
  (database) => {
    let ledger: ShopApp;
    beforeAll(async () => {
      ledger = await startLedger({ database: database.db, clock });
    });
    afterEach(() => {
      steps.before = undefined;
      steps.after = undefined;
    });
    afterAll(() => ledger.close());
    const pay = (key: string | undefined, body: object = { account: key, amount: 5 }, person: Person = 'ann', path = 'payments') =>
      ledger.call(person, 'POST', path, body, key === undefined ? {} : { 'idempotency-key': key });
    const asNobody = (method: string, path: string, body?: object, headers?: Record<string, string>) =>
      Reflect.apply(ledger.call, undefined, [null, method, path, body, headers]);
    const rows = (account: string) => database.db.query<{ id: string }>('select id from payments where account = $1', [account]);

    test('56: of twenty at once one is made; the others are told to wait, or get its response', async () => {
      const key = newKey();
      const answers = await Promise.all(Array.from({ length: 20 }, () => pay(key)));
      expect(await rows(key)).toHaveLength(1);
      const fresh = answers.filter(({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined);
      expect(fresh).toHaveLength(1);
      const others = answers
        .filter((each) => each !== fresh[0])
        .map(({ status, body, text }) => (status === 201 ? text : `${status} ${body.code}`));
      expect([fresh[0]?.text, '409 request_in_progress']).toEqual(expect.arrayContaining([...new Set(others)]));
      const waiting = answers.filter(({ status }) => status === 409).map(({ headers }) => String(headers['retry-after']));
      expect(waiting.filter((seconds) => !/^[1-5]$/.test(seconds))).toEqual([]);
      expect((await pay(key)).text).toBe(fresh[0]?.text);
    });

    test('a body that arrives slowly does not hold its key: a complete request with the key is served, and the slow one gets its response', async () => {
      const key = newKey();
      const body = JSON.stringify({ account: key, amount: 5 });
      const head = `POST /v1/payments HTTP/1.1\r\nhost: x\r\nx-user: ann\r\ncontent-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n`;
      const address = await ledger.app.listen({ port: 0 });
      await using slow = await RawConnection.open(address);
      await using cut = await RawConnection.open(address);
      for (const connection of [slow, cut]) connection.send(head, body.slice(0, 10));
      const first = await pay(key);
      expect(first.status).toBe(201);
      slow.send(body.slice(10));
      expect(await slow.answer(600_000)).toMatchObject({ status: 201, body: first.text, headers: { 'idempotent-replayed': 'true' } });
      // A client that was killed in the middle of its body leaves nothing behind.
      cut.socket.destroy();
      expect((await pay(key)).text).toBe(first.text);
      expect(await rows(key)).toHaveLength(1);
    });

    test('57: a replay has the same bytes and headers; another body is 422; another caller is another request', async () => {
      const key = newKey();
      const first = await pay(key, { account: key, amount: 5, note: 'é' });
      const again = await pay(key, { note: 'é', amount: 5, account: key });
      expect([
        again.status,
        again.text,
        again.headers['location'],
        again.headers['content-type'],
        again.headers['idempotent-replayed'],
      ]).toEqual([201, first.text, first.headers['location'], first.headers['content-type'], 'true']);
      expect(first.headers['idempotent-replayed']).toBeUndefined();
      const other = await pay(key, { account: key, amount: 6 });
      expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
      expect((await pay(key, { account: key, amount: 5, note: 'é' }, 'bob')).headers['idempotent-replayed']).toBeUndefined();
      expect((await pay(key, { account: key, amount: 5 }, 'ann', 'payments/required')).headers['idempotent-replayed']).toBeUndefined();
      expect(await rows(key)).toHaveLength(3);
    });

    test.runIf(database.dialect === 'postgres')(
      'only the commit of a claim does not wait for the disk: the change after it does',
      async () => {
        const seen: unknown[] = [];
        steps.after = async (tx) => void seen.push(...(await tx.query('show synchronous_commit')));
        expect((await pay(newKey())).status).toBe(201);
        expect(seen).toEqual([{ synchronous_commit: 'on' }]);
        // On one connection: the claim and what is asked after it follow one another.
        await database.db.transaction(async (tx) => {
          const claim: Claim = { scopeHash: newKey(), key: 'k', caller: 'c', operation: 'o', fingerprint: 'f', token: uuidv7() };
          expect(await claimKey(tx, claim)).toBe(true);
          expect(await tx.query('show synchronous_commit')).toEqual([{ synchronous_commit: 'off' }]);
        });
      },
    );

    test('57: bytes that are no text, and a type without a character set, are replayed as they are', async () => {
      const key = newKey();
      const send = () => ledger.call('ann', 'POST', 'payments/bytes', { account: key, amount: 5 }, { 'idempotency-key': key });
      const [first, second] = [await send(), await send()];
      expect(second.headers['idempotent-replayed']).toBe('true');
      const told = ({ status, headers, text }: typeof first) => [status, headers['content-type'], headers['content-length'], text];
      expect(told(second)).toEqual(told(first));
      expect(told(second).slice(0, 3)).toEqual([201, 'application/json', '4']);
    });

    test('a repeated DELETE gets its 204 again', async () => {
      const { id } = (await pay(newKey())).body;
      const key = newKey();
      const remove = () => ledger.call('ann', 'DELETE', `payments/${id}`, undefined, { 'idempotency-key': key });
      const [first, second] = [await remove(), await remove()];
      expect([first.status, second.status, second.text, second.headers['idempotent-replayed']]).toEqual([204, 204, '', 'true']);
      expect((await ledger.call('ann', 'DELETE', `payments/${id}`)).status).toBe(404);
    });

    test('60: a refusal of the operation is kept; a failure of the server is not; after 24 hours the key is free', async () => {
      const refused = newKey();
      const [first, second] = [await pay(refused, { account: refused, amount: 0 }), await pay(refused, { account: refused, amount: 0 })];
      expect([first.status, second.status, second.text, second.headers['idempotent-replayed']]).toEqual([409, 409, first.text, 'true']);
      expect(second.headers['content-type']).toBe(first.headers['content-type']);
      const failing = newKey();
      expect((await pay(failing, { account: failing, amount: -1 })).status).toBe(500);
      expect((await listRecords(database.db, { key: failing }, 5)).length).toBe(0);
      expect((await pay(failing)).status).toBe(201);
      clock.advance(24 * HOUR_MS - 1000);
      expect((await pay(failing)).headers['idempotent-replayed']).toBe('true');
      clock.advance(2000);
      expect((await pay(failing, { account: failing, amount: 7 })).headers['idempotent-replayed']).toBeUndefined();
      expect(await rows(failing)).toHaveLength(2);
    });

    test('401 and 403 are decided at every attempt: they use no key', async () => {
      const key = newKey();
      const anonymous = await asNobody('POST', 'payments', { account: key, amount: 1 }, { 'idempotency-key': key });
      expect(anonymous.status).toBe(401);
      expect(await listRecords(database.db, { key }, 5)).toEqual([]);
    });

    test('61: a key of 256 characters, an empty one or one with a space is 400; a missing one where it is required, too', async () => {
      for (const key of ['x'.repeat(256), '', 'a b', 'ü']) {
        const { status, body } = await pay(key);
        expect([key.slice(0, 5), status, body.code]).toEqual([key.slice(0, 5), 400, 'invalid_idempotency_key']);
      }
      expect((await pay('x'.repeat(255), { account: 'long', amount: 1 })).status).toBe(201);
      expect((await pay(undefined, { account: 'a', amount: 1 }, 'ann', 'payments/required')).body.code).toBe('idempotency_key_required');
      expect((await pay(undefined)).status).toBe(422);
      expect((await pay(undefined, { account: 'none', amount: 1 })).status).toBe(201);
    });

    test('60: the 422 of a body that the schema refuses is replayed; a corrected body needs a new key', async () => {
      const key = newKey();
      const [first, second] = [await pay(key, { account: key }), await pay(key, { account: key })];
      expect([first.status, first.body.code, first.headers['idempotent-replayed']]).toEqual([422, 'validation_error', undefined]);
      expect([second.status, second.text, second.headers['idempotent-replayed']]).toEqual([422, first.text, 'true']);
      expect((await pay(key)).body.code).toBe('idempotency_key_reused');
      expect(await rows(key)).toEqual([]);
      const done = newKey();
      expect((await pay(done)).status).toBe(201);
      expect((await pay(done, { account: done })).body.code).toBe('idempotency_key_reused');
    });

    test('a response that is too large, or has sensitive members, is not kept; the operation is still done once', async () => {
      for (const [path, body] of [
        ['payments', { amount: 5, note: 'x'.repeat(300_000) }],
        ['payments/secret', { amount: 5 }],
      ] as const) {
        const key = newKey();
        const send = () => pay(key, { account: key, ...body }, 'ann', path);
        expect((await send()).status).toBe(201);
        const again = await send();
        expect([path, again.status, again.body.code]).toEqual([path, 409, 'response_not_kept']);
        expect(await rows(key)).toHaveLength(1);
        const [record] = await listRecords(database.db, { key }, 1);
        expect([record?.body, JSON.stringify(record?.headers)]).toEqual([null, '{}']);
      }
    });

    test('a caller whose scopes changed does not get the old response', async () => {
      const key = newKey();
      await pay(key);
      await database.db.execute('update kit_idempotency set audience = $1 where key = $2', ['another', key]);
      expect((await pay(key)).body.code).toBe('response_not_kept');
    });

    test('a commit whose answer was lost is found by the retry', async () => {
      const key = newKey();
      steps.after = (tx) =>
        tx.afterCommit(() => {
          throw new Error('the connection is gone');
        });
      await pay(key);
      steps.after = undefined;
      expect((await pay(key)).headers['idempotent-replayed']).toBe('true');
      expect(await rows(key)).toHaveLength(1);
    });

    test('clock steps: a record is not forgotten when the clock goes back, and is taken over once when it jumps ahead', async () => {
      const key = newKey();
      const first = await pay(key);
      clock.advance(-2 * HOUR_MS);
      expect((await pay(key)).text).toBe(first.text);
      clock.advance(2 * HOUR_MS);
      const claim = (scopeHash: string, token: string): Claim => ({ scopeHash, key, caller: 'x', operation: 'x', fingerprint: 'f', token });
      const [one, two] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'] as const;
      const answer = { status: 200, headers: {}, body: new Uint8Array(), audience: 'a' };
      const { db } = database;
      // 59: a worker that lost its lease cannot complete.
      expect(await claimKey(db, claim('lost', one))).toBe(true);
      expect(await claimKey(db, claim('lost', two))).toBe(false);
      clock.advance(61_000);
      expect(await claimKey(db, { ...claim('lost', two), fingerprint: 'another request' })).toBe(false);
      expect(await Promise.all([claimKey(db, claim('lost', two)), claimKey(db, claim('lost', two))])).toContain(true);
      clock.advance(-HOUR_MS);
      await prolongClaim(db, claim('lost', one));
      await releaseClaim(db, claim('lost', one));
      expect(await completeClaim(db, claim('lost', one), answer)).toBe(false);
      expect(await completeClaim(db, claim('lost', two), answer)).toBe(true);
      expect(await db.query(`select state from kit_idempotency where scope_hash = 'lost'`)).toEqual([{ state: 'complete' }]);
      clock.advance(HOUR_MS);
    });

    test('61: kit idempotency lists records without their responses, frees a key, and removes what is expired', async () => {
      const key = newKey();
      await pay(key);
      const printed: string[] = [];
      const run = async (...args: string[]) => {
        printed.length = 0;
        const context = {
          app: () => Promise.resolve(ledger.app),
          print: (text: string) => void printed.push(text),
          json: false,
          fail: (message: string) => {
            throw new Error(message);
          },
        };
        const command = new Command('idempotency').exitOverride();
        idempotencyCommand(command, context as never);
        await command.parseAsync(args, { from: 'user' });
        return printed.join('\n');
      };
      const listed = await run('list', '--key', key);
      expect(listed).toContain(key);
      expect(listed).toContain(people.ann.id);
      expect(listed).not.toContain('"amount"');
      await expect(run('list', '--state', 'gone')).rejects.toThrow('running or complete');
      expect(await run('release', key)).toContain('free again');
      await expect(run('release', key)).rejects.toThrow('No record');
      expect((await pay(key)).headers['idempotent-replayed']).toBeUndefined();
      clock.advance(25 * HOUR_MS);
      const later = newKey();
      await pay(later);
      expect(await run('prune')).toMatch(/^\d+ expired records removed\.$/);
      expect((await listRecords(database.db, {}, 100)).map((record) => record.key)).toEqual([later]);
    });

    test('atomic: a failure after the write saves nothing, the answer leaves after the commit, and others have no tx', async () => {
      steps.after = () => {
        throw new Error('no');
      };
      expect((await pay(undefined, { account: 'failed', amount: 1 })).status).toBe(500);
      expect(await rows('failed')).toEqual([]);
      let isCommitted = false;
      steps.after = (tx) => tx.afterCommit(() => (isCommitted = true));
      expect([(await pay(undefined, { account: 'fine', amount: 1 })).status, isCommitted]).toEqual([201, true]);
      expect((await pay(undefined, { account: 'x', amount: 1 }, 'ann', 'payments/plain')).status).toBe(500);
      expect(ledger.records.some(({ err }) => JSON.stringify(err ?? '').includes('declare atomic: true'))).toBe(true);
    });

    test('atomic with retries: conflicting requests run again, each is done once, and headers are those of one attempt', async () => {
      const account = newKey();
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => pay(`${account}-${index}`, { account, amount: index + 1 }, 'ann', 'payments/serializable')),
      );
      expect(answers.map(({ status, headers }) => [status, headers['vary']])).toEqual(answers.map(() => [201, 'x']));
      expect(await rows(account)).toHaveLength(6);
    });

    test('59: on PostgreSQL a request whose claim was taken over rolls back with 409 idempotency_lost', async () => {
      if (database.db.dialect !== 'postgres') return; // SQLite's one writer keeps others from claiming while it works.
      const key = newKey();
      const [entered, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      steps.before = async () => {
        steps.before = undefined;
        entered.resolve();
        await go.promise;
      };
      const slow = pay(key);
      await entered.promise;
      expect((await pay(key)).body.code).toBe('request_in_progress');
      clock.advance(61_000);
      const taken = await pay(key);
      expect(taken.status).toBe(201);
      go.resolve();
      const lost = await slow;
      expect([lost.status, lost.body.code]).toEqual([409, 'idempotency_lost']);
      expect((await rows(key)).map(({ id }) => id)).toEqual([taken.body.id]);
      expect((await pay(key)).text).toBe(taken.text);
    });

    test('a completion that fails with the commit saves nothing, and the key is free for the retry', async () => {
      if (database.db.dialect !== 'postgres') return; // SQLite sends nothing ahead: its statement fails where it stands.
      await database.db.query(`create function refuse_completion() returns trigger language plpgsql as $$ begin
        if new.key like '%-lost-connection' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); end if;
        raise exception 'no room' using errcode = '53100';
      end $$`);
      const when = `new.state = 'complete' and new.key like 'fails-%'`;
      await database.db.query(
        `create trigger refuse before update on kit_idempotency for each row when (${when}) execute function refuse_completion()`,
      );
      const keys = [`fails-${newKey()}`, `fails-${newKey()}-lost-connection`];
      for (const key of keys) {
        const { status } = await pay(key, { account: key.slice(-40), amount: 5 });
        expect([key, status, await rows(key.slice(-40)), await listRecords(database.db, { key }, 1)]).toEqual([key, 503, [], []]);
      }
      await database.db.query('drop trigger refuse on kit_idempotency');
      for (const key of keys) expect((await pay(key, { account: key.slice(-40), amount: 5 })).status).toBe(201);
    });

    test('the OpenAPI document has the header, the replay and the codes', async () => {
      const document = wholeDocument((await asNobody('GET', '/openapi.json')).body);
      const operation = document.paths['/v1/payments'].post;
      expect(operation.parameters).toEqual([expect.objectContaining({ name: 'Idempotency-Key', in: 'header' })]);
      expect(operation.responses['201'].headers['Idempotent-Replayed']).toBeDefined();
      expect(JSON.stringify(operation.responses['409'])).toContain('request_in_progress');
      expect(document.paths['/v1/payments/required'].post.parameters[0].required).toBe(true);
    });
  },
  { database: { clock } },
);

describe('E019', () => {
  const schema = z.object({});
  const start = (routes: Record<string, unknown>): string[] => {
    class Routes extends Controller {
      constructor() {
        super();
        Object.assign(this, routes);
      }
    }
    try {
      createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': { '/x': Routes } } });
      return [];
    } catch (error) {
      return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
    }
  };
  const permission = isAuthenticated;
  const work = () => undefined;

  test.each([
    ['not atomic', route.post('/', { permission, idempotent: true }, work)],
    ['anonymous callers', route.post('/', { permission: allowAny, atomic: true, idempotent: true }, work)],
    ['as a stream', route.post('/', { permission, atomic: true, idempotent: true, body: raw(['text/csv'], { stream: true }) }, work)],
    ['is a read', route.get('/', { permission, atomic: true, idempotent: true, response: schema }, () => ({}))],
    ['would wait for the client', route.post('/', { permission, atomic: true, body: raw(['text/plain'], { stream: true }) }, work)],
    ['cannot be atomic', { ...route.stream('/', { permission }, async function* none() {}), options: { permission, atomic: true } }],
  ])('refuses what is %s', (reason, given) => {
    const faults = start({ field: given });
    expect(faults.filter((fault) => fault.startsWith('E019'))).toHaveLength(1);
    expect(faults.find((fault) => fault.startsWith('E019'))).toContain(reason);
  });

  test('an anonymous route that tells its callers apart, and a good one, start', () => {
    const anonymous = ({ clientAddress }: { clientAddress: string }) => clientAddress;
    expect(start({ field: route.post('/', { permission: allowAny, atomic: true, idempotent: { anonymous } }, work) })).toEqual([]);
    expect(start({ field: route.post('/', { permission, atomic: true, idempotent: 'required' }, work) })).toEqual([]);
    expect(start({ field: route.post('/', { permission, atomic: { retry: 3 } as never }, work) })[0]).toMatch(/^E011/);
  });
});
