import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scaled } from '../../../../../../test/provision/scale.ts';
import { uploadApp } from '../../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { findOrphans, processUploads } from './clean.ts';

const SCRIPT = join(import.meta.dirname, '../../../../test/uploads/crash-process.ts');
const DAY_MS = 86_400_000;

interface Outcome {
  /** Before anything was repeated; null: the client never heard of the upload, or it is deleted. */
  readonly state: 'pending' | 'complete' | null;
  /** What completing it again answers. */
  readonly again: 200 | 409 | 404;
}

const PENDING: Outcome = { state: 'pending', again: 200 };
const NOT_SENT: Outcome = { state: 'pending', again: 409 };
const COMPLETE: Outcome = { state: 'complete', again: 200 };
const GONE: Outcome = { state: null, again: 404 };

// The moments of a completion, in their order: receive, look, read, copy, [commit], remove.
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  'receive:before': NOT_SENT,
  'receive:after': PENDING,
  'head:after': PENDING,
  'read:after': PENDING,
  'copy:after': PENDING,
  'remove:before': COMPLETE,
  'remove:after': COMPLETE,
  'multipart createMultipart:after': GONE,
  'multipart receivePart:before': NOT_SENT,
  'multipart receivePart:after': PENDING,
  'multipart completeMultipart:after': PENDING,
  'multipart copy:after': PENDING,
  'multipart remove:before': COMPLETE,
  'delete remove:before': GONE,
  'delete remove:after': GONE,
};

/** The client never hears of this upload: only clean-up meets it. */
const UNHEARD = 'multipart createMultipart:after';
/** Each is a process that starts an application: `npm test` tries those between two writes. */
const SHORT: ReadonlySet<string> = new Set([
  'receive:after',
  'copy:after',
  'remove:before',
  UNHEARD,
  'multipart completeMultipart:after',
  'delete remove:before',
]);
const moments = Object.keys(OUTCOMES).filter((moment) => scaled(0, 1) === 1 || SHORT.has(moment));

describeDatabases('a process that is killed', (database) => {
  const killed = new Map<string, { readonly id: string; readonly signal: string | null }>();
  let folder = '';
  const start = () => uploadApp({ database: database.db, folder });

  // Two at a time: each is a process that starts an application.
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-crash-'));
    await (await start())[Symbol.asyncDispose]();
    const waiting = [...moments];
    const work = async () => {
      for (let moment = waiting.shift(); moment !== undefined; moment = waiting.shift()) {
        const child = spawn(process.execPath, ['--conditions=source', SCRIPT, database.url, folder, moment], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        let id = '';
        child.stdout.on('data', (text: Buffer) => (id += text.toString().trim()));
        const [, signal] = (await once(child, 'close')) as [number | null, string | null];
        killed.set(moment, { id, signal });
      }
    };
    await Promise.all([work(), work()]);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(moments.filter((moment) => moment !== UNHEARD))(
    'at %s leaves no complete upload without its bytes, and what arrived can be completed',
    async (moment) => {
      const { id, signal } = killed.get(moment) ?? { id: '', signal: null };
      const { state, again } = OUTCOMES[moment] ?? GONE;
      expect(signal).toBe('SIGKILL');
      await using app = await start();
      const before = await app.call<{ state?: string }>('GET', `/v1/uploads/${id}`);
      expect(before.body.state ?? null).toBe(state);
      expect((await app.call('POST', `/v1/uploads/${id}/complete`)).status).toBe(again);
      const { body } = await app.call<{ url?: string }>('GET', `/v1/uploads/${id}?url=true`);
      const bytes = body.url === undefined ? null : (await app.call('GET', body.url, undefined, {})).bytes.toString();
      expect(bytes).toBe(again === 200 ? 'hello' : null);
    },
  );

  test('leaves no file that the scheduled clean-up does not find: those of the complete uploads stay, and nothing else', async () => {
    expect(killed.get(UNHEARD)).toEqual({ id: '', signal: 'SIGKILL' });
    await using app = await start();
    app.clock.advance(2 * DAY_MS);
    await processUploads(app.db);
    const files = await app.files();
    expect(files).toHaveLength(moments.filter((moment) => OUTCOMES[moment]?.again === 200).length);
    expect(files.every((file) => file.includes('/final/'))).toBe(true);
    expect(await findOrphans(app.db, 100)).toEqual([]);
    const states = await app.db.query<{ state: string }>('select distinct state from uploads order by state');
    expect(states.map(({ state }) => state)).toEqual(['complete', 'expired']);
  });
});
