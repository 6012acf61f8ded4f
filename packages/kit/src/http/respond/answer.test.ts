import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import { KitError } from '../../errors/kit-error.ts';
import { allowAny, hasRule } from '../../permissions/built-ins.ts';
import { Controller } from '../compile/controller.ts';
import { raw } from '../declare/raw.ts';
import { route } from '../declare/route.ts';

const Text = z.object({ text: z.string() });
/** A file name as users choose them: Node sends only Latin-1. */
const name = '日本.csv';
let opened: Readable[] = [];

function waiting(): Readable {
  const stream = new Readable({ read: () => undefined });
  opened.push(stream);
  return stream;
}

class FileController extends Controller {
  atOnce = route.get('/at-once', { response: Text, permission: allowAny }, ({ reply }) => {
    reply.header('content-disposition', `attachment; filename="${name}"`);
    return { text: '' };
  });
  later = route.get('/later', { response: Text, permission: allowAny }, async ({ reply }) => {
    reply.header('x-name', 'two\r\nlines: 1');
    return { text: '' };
  });
  late = route.get('/late', { permission: allowAny, timeoutMs: 5 }, ({ reply, signal }) => {
    reply.header('location', `/${name}`);
    reply.header('x-name', name);
    return new Promise<undefined>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  });
  refused = route.get('/refused', { permission: allowAny }, async () => {
    throw new KitError({ code: 'teapot', status: 418, detail: 'No coffee.', headers: { 'x-name': name } });
  });
  file = route.get('/file', { response: raw('text/csv'), permission: allowAny }, async ({ reply }) => {
    reply.header('content-disposition', `attachment; filename="${name}"`);
    return waiting();
  });
  events = route.stream('/events', { response: Text, permission: allowAny }, async function* ({ reply }) {
    reply.header('x-name', name);
    yield { data: { text: '' } };
  });
}

class StreamController extends Controller {
  long = route.get('/long', { response: raw('text/csv'), permission: allowAny }, async ({ reply }) => {
    reply.header('content-length', '1000000');
    let left = 1000;
    const stream = new Readable({ read: () => void stream.push(left-- > 0 ? 'x'.repeat(1000) : null) });
    opened.push(stream);
    return stream;
  });
  tooLate = route.get('/too-late', { response: raw('text/csv'), permission: allowAny, timeoutMs: 5 }, async ({ signal }) => {
    await once(signal, 'abort');
    return waiting();
  });
  unsettled = route.get('/unsettled', { response: raw('text/csv'), permission: hasRule(() => 'unknown') }, async () => waiting());
}

class OddController extends Controller {
  status = route.get('/status/:status', { params: z.object({ status: z.number() }), permission: allowAny }, async ({ params }) => {
    throw new KitError({ code: 'odd', status: params.status, detail: 'Odd.' });
  });
}

let app: App;
let address: string;
const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', note).on('uncaughtException', note);
  app = createApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/files': FileController, '/odd': OddController, '/streams': StreamController } },
    log: { level: 'error', hooks: { logMethod: () => undefined } },
  });
  address = await app.listen({ port: 0 });
});
afterAll(async () => {
  process.off('unhandledRejection', note).off('uncaughtException', note);
  await app.close();
});

async function answerTo(path: string, init: RequestInit = {}): Promise<[number, string | undefined]> {
  const response = await fetch(`${address}/v1${path}`, { ...init, signal: AbortSignal.timeout(3000) });
  const text = await response.text();
  expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(response.headers.get('x-request-id')).toMatch(/^[\w-]+$/);
  return [response.status, (JSON.parse(text) as { code?: string }).code];
}

describe('headers that Node refuses to send', () => {
  test.each(['/files/at-once', '/files/later', '/files/file', '/files/events'])('%s is an ordinary 500', async (path) => {
    opened = [];
    expect(await answerTo(path)).toEqual([500, 'internal_error']);
    for (const stream of opened) if (!stream.closed) await once(stream, 'close');
  });

  test('do not stand in the way of an answer that something else decided', async () => {
    expect(await answerTo('/files/refused')).toEqual([418, 'teapot']);
    expect(await answerTo('/files/late')).toEqual([503, 'deadline_exceeded']);
  });
});

describe('streams', () => {
  test('one that is not read is closed: the answer was given already, or the permission never', async () => {
    opened = [];
    expect(await answerTo('/streams/too-late')).toEqual([503, 'deadline_exceeded']);
    expect(await answerTo('/streams/unsettled')).toEqual([403, 'permission_denied']);
    await expect.poll(() => opened.map((stream) => stream.destroyed)).toEqual([true, true]);
  });

  test('HEAD does not read one to its end', async () => {
    opened = [];
    const response = await fetch(`${address}/v1/streams/long`, { method: 'HEAD', signal: AbortSignal.timeout(3000) });
    expect([response.status, response.headers.get('content-type'), response.headers.get('content-length')]).toEqual([
      200,
      'text/csv',
      '1000000',
    ]);
    expect(opened.map((stream) => [stream.destroyed, stream.readableEnded])).toEqual([[true, false]]);
  });
});

test.each([200, 399, 600, 99_999, -1, 400.5])('an error of the invalid status %d is a 500', async (status) => {
  expect(await answerTo(`/odd/status/${status}`)).toEqual([500, 'internal_error']);
});

test('none of this was left to the process', async () => {
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(unhandled).toEqual([]);
});
