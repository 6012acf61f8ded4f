import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import type { Module } from '../../src/app/declare/module.ts';
import type { AppOptions } from '../../src/app/declare/options.ts';
import type { Mountable } from '../../src/http/compile/controller.ts';
import {
  diskStore,
  UploadController,
  uploads,
  type UploadOptions,
  type UploadPolicy,
  type UploadStore,
} from '../../src/contrib/uploads/index.ts';
import { coreErrors } from '../../src/errors/core-errors.ts';
import { fakeClock, testApp, type FakeClock, type TestApp } from '../../src/testing/index.ts';

/** `x-user: ann`, with `x-scopes: uploads:read` for a credential that carries scopes. */
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => {
    const id = headers['x-user'];
    if (typeof id !== 'string') return null;
    if (id === 'mallory') throw coreErrors.invalid_credentials();
    const scopes = typeof headers['x-scopes'] === 'string' ? headers['x-scopes'].split(' ') : null;
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: id === 'root', is_superuser: false },
      scheme: 'header',
      scopes,
    };
  },
};

export interface UploadAppOptions extends Partial<Omit<UploadOptions, 'store'>> {
  readonly database?: AppOptions['database'];
  readonly policy?: UploadPolicy;
  readonly store?: (folder: string) => UploadStore;
  readonly modules?: readonly Module[];
  /** Beside the uploads, below `/v1`. */
  readonly mount?: Readonly<Record<string, Mountable>>;
  readonly app?: Partial<AppOptions>;
  readonly folder?: string;
}

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: T;
  readonly bytes: Buffer;
}

export interface Created {
  readonly id: string;
  readonly state: string;
  readonly method: 'PUT' | 'POST';
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly multipart?: {
    readonly part_size: number;
    readonly part_count: number;
    readonly parts: readonly { number: number; size: number; url: string; headers: Record<string, string> }[];
  };
}

export interface UploadApp extends AsyncDisposable {
  readonly test: TestApp;
  readonly clock: FakeClock;
  readonly folder: string;
  readonly db: TestApp['app']['db'];
  call<T = Record<string, unknown>>(method: string, url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<T>>;
  /** Announces a file as `ann`. */
  announce(file: Buffer, more?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer<Created>>;
  /** Sends bytes to a signed address of the app itself. */
  send(created: Pick<Created, 'url' | 'headers'>, bytes: Buffer, headers?: Record<string, string>): Promise<Answer>;
  /** Announces, sends and completes. */
  upload(file: Buffer, more?: Record<string, unknown>): Promise<Answer<Created>>;
  /** Every file in the folder, as a path inside it. */
  files(): Promise<string[]>;
}

export const URL_KEYS = ['k'.repeat(32)];
export const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('base64');

/** A real app with uploads, on the disk store unless another is given. */
export async function uploadApp(options: UploadAppOptions = {}): Promise<UploadApp> {
  const { database, policy = {}, store, modules = [], mount = {}, app: appOptions, folder: given, ...more } = options;
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'kit-uploads-')));
  const clock = fakeClock(new Date());
  class Uploads extends UploadController {
    static override readonly policy = policy;
  }
  const test = await testApp({
    ...(database === undefined ? {} : { database }),
    authenticators: [byHeader],
    modules: [uploads({ store: store?.(folder) ?? diskStore({ folder }), urlKeys: URL_KEYS, cleanEverySeconds: 0, ...more }), ...modules],
    mount: { '/v1': { '/uploads': Uploads, ...mount } },
    clock,
    ...appOptions,
  });
  const call: UploadApp['call'] = async <T>(
    method: string,
    url: string,
    body?: unknown,
    headers: Record<string, string> = { 'x-user': 'ann' },
  ) => {
    const payload = body === undefined ? {} : { payload: body as Buffer };
    const response = await test.inject({ method: method as 'GET', url, headers, ...payload });
    const isJson = String(response.headers['content-type']).includes('json');
    return {
      status: response.statusCode,
      headers: response.headers,
      body: (isJson && response.body !== '' ? JSON.parse(response.body) : {}) as T,
      bytes: response.rawPayload,
    };
  };
  const announce: UploadApp['announce'] = (file, fields = {}, headers) =>
    call<Created>('POST', '/v1/uploads', { filename: 'a.txt', content_type: 'text/plain', size: file.length, ...fields }, headers);
  const send: UploadApp['send'] = (created, bytes, headers = {}) => call('PUT', created.url, bytes, { ...created.headers, ...headers });
  return {
    test,
    clock,
    folder,
    db: test.app.db,
    call,
    announce,
    send,
    async upload(file, fields) {
      const created = await announce(file, fields);
      if (created.status !== 201) return created;
      await send(created.body, file);
      return call<Created>('POST', `/v1/uploads/${created.body.id}/complete`);
    },
    async files() {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
        .toSorted();
    },
    async [Symbol.asyncDispose]() {
      await test.close();
      if (given === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}
