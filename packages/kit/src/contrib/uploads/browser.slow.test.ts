import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../../../../test/provision/chromium.ts';
import { uploadApp, type UploadApp } from '../../../test/uploads/upload-app.ts';
import { Controller } from '../../http/compile/controller.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { s3Double } from '../../testing/s3/s3-double.ts';
import type { SendUploadOptions } from './browser.ts';
import { UploadController } from './controller.ts';
import { s3Store } from './stores/s3-store.ts';

const MIB = 1024 * 1024;
const SOURCE = join(import.meta.dirname, 'browser.ts');
const script = stripTypeScriptTypes(await readFile(SOURCE, 'utf8'));

class PageController extends Controller {
  page = route.get('/', { response: raw('text/html'), permission: allowAny }, () => '<!doctype html><title>Upload</title>');
  script = route.get('/browser.js', { response: raw('text/javascript'), permission: allowAny }, () => script);
}
class Uploads extends UploadController {
  static override readonly policy = { bytesMax: 100 * MIB, partBytes: 5 * MIB };
}
const mount = { '/v1': { '/uploads': Uploads }, '/': { '/page': PageController } };

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

// Pages stay open: closing the last one ends a browser of a single process.
async function openPage(app: UploadApp): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${await app.test.listen()}/page`);
  await page.addScriptTag({ type: 'module', content: `import { sendUpload } from '/page/browser.js'; window.sendUpload = sendUpload;` });
  await page.waitForFunction(() => 'sendUpload' in globalThis);
  return page;
}

interface Outcome {
  readonly answer?: { readonly id: string; readonly state: string };
  readonly progress: readonly (readonly [number, number])[];
  readonly error?: { readonly message: string; readonly name: string; readonly code?: string };
  readonly started?: string;
}

/** Sends `size` bytes from inside the page. */
function send(page: Page, size: number, options: Partial<SendUploadOptions> & { readonly abortAfter?: number } = {}): Promise<Outcome> {
  return page.evaluate(
    async ({ size: bytes, options: { abortAfter, ...given } }) => {
      const { sendUpload } = globalThis as unknown as {
        sendUpload: (file: File, options: object) => Promise<{ id: string; state: string }>;
      };
      const content = new Uint8Array(bytes).map((_, index) => 97 + (index % 23));
      const file = new File([content], 'Größe.txt', { type: 'text/plain' });
      const progress: [number, number][] = [];
      const aborter = new AbortController();
      let started: string | undefined;
      try {
        const answer = await sendUpload(file, {
          endpoint: '/v1/uploads',
          headers: { 'x-user': 'ann' },
          signal: aborter.signal,
          onStart: (id: string) => (started = id),
          onProgress: (sent: number, total: number) => {
            progress.push([sent, total]);
            if (abortAfter !== undefined && sent >= abortAfter) aborter.abort();
          },
          ...given,
        });
        return { answer, progress, ...(started === undefined ? {} : { started }) };
      } catch (error) {
        const { message, name, code } = error as Error & { code?: string };
        return {
          progress,
          error: { message, name, ...(code === undefined ? {} : { code }) },
          ...(started === undefined ? {} : { started }),
        };
      }
    },
    { size, options },
  );
}

test('it is at most 4 KB without its comments, and imports nothing', () => {
  const bare = script
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/\s*\n\s*/g, '\n');
  expect(bare.length).toBeLessThanOrEqual(4096);
  expect(script).not.toMatch(/^\s*import /m);
});

test('a file goes to the disk store with its checksum, and its progress is told', async () => {
  await using app = await uploadApp({ app: { mount } });
  const { answer, progress } = await send(await openPage(app), 300_000);
  expect(answer).toMatchObject({ state: 'complete', filename: 'Größe.txt', size: 300_000, checksum_sha256: expect.any(String) });
  expect(progress.at(-1)).toEqual([300_000, 300_000]);
});

test('a large file goes in parts; interrupted, it goes on with what is missing', async () => {
  await using app = await uploadApp({ app: { mount } });
  const page = await openPage(app);
  // At most three parts of 5 MiB are under way: beyond 15 MiB one has arrived.
  const broken = await send(page, 22 * MIB, { multipartAbove: MIB, abortAfter: 16 * MIB });
  expect(broken.error).toMatchObject({ name: 'AbortError' });
  const parts = (await app.files()).filter((file) => /\/\d{5}-\d+-[0-9a-f]{64}$/.test(file));
  expect(parts.length).toBeGreaterThan(0);
  const { answer } = await send(page, 22 * MIB, { multipartAbove: MIB, resume: broken.started ?? '' });
  expect(answer).toMatchObject({ id: broken.started, state: 'complete', size: 22 * MIB });
  expect(await app.files()).toHaveLength(1);
});

test('a file goes straight to S3, and what fails on the way is tried again', async () => {
  await using double = await s3Double();
  const { endpoint, region, bucket, key: credentials } = double;
  const store = () => s3Store({ endpoint, region, bucket, credentials, forcePathStyle: true });
  await using app = await uploadApp({ store, app: { mount, clock: { now: () => new Date() } } });
  const page = await openPage(app);
  double.fail({ when: ({ method }) => method === 'PUT', fault: 'error' });
  double.fail({ when: ({ method, query }) => method === 'PUT' && query.has('X-Amz-Signature'), fault: 'reset' });
  expect((await send(page, 300_000)).answer).toMatchObject({ state: 'complete' });
  double.fail({ when: ({ method, query }) => method === 'PUT' && query.get('partNumber') === '2', fault: 'lost' });
  const { answer } = await send(page, 11 * MIB, { multipartAbove: MIB });
  expect(answer).toMatchObject({ state: 'complete', size: 11 * MIB });
});

test('what the app refuses is told with its code, at once', async () => {
  await using app = await uploadApp({ app: { mount } });
  const { error } = await send(await openPage(app), 101 * MIB, { multipartAbove: 200 * MIB });
  expect(error).toEqual({ name: 'Error', message: 'The file is too large.', code: 'upload_too_large' });
});
