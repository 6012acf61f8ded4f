import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { admin, type AdminOptions } from '../../src/admin/index.ts';
import type { App, AppOptions, Module } from '../../src/app/index.ts';
import { createApp } from '../../src/app/assemble/create-app.ts';
import { migrateApp } from '../../src/app/data/migration-modules.ts';
import { accounts, type AccountsOptions, createUser } from '../../src/contrib/accounts/index.ts';
import type { NewUser } from '../../src/contrib/accounts/users/manage-users.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import type { Database } from '../../src/db/engine/db.ts';
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import { memoryStorage } from '../../src/throttle/index.ts';

export const PASSWORD = 'correct horse battery';
export const HOST = 'api.example.com';

/** A logged-in browser: its cookie and CSRF token. */
export interface Browser {
  readonly userId: string;
  readonly cookie: string;
  readonly csrf: string;
}

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  readonly body: any;
  readonly text: string;
  readonly headers: LightMyRequestResponse['headers'];
}

/** `clock` must be the database's own where the database makes times. */
export type AdminAppOptions = Partial<Omit<AppOptions, 'clock'>> & { readonly clock?: FakeClock };

/** An application with the admin site on a given database, over HTTP. */
export class AdminApp {
  readonly clock: FakeClock;
  readonly logged: string[] = [];
  /** Every answer so far: what must never leave is looked for in all of them. */
  readonly answers: string[] = [];
  readonly app: App;
  readonly #files = siteFolder();
  #people = 0;

  constructor(
    database: Database,
    modules: readonly Module[] = [],
    { clock = fakeClock(), ...options }: AdminAppOptions = {},
    adminOptions: AdminOptions = {},
    accountsOptions: AccountsOptions = {},
  ) {
    this.clock = clock;
    this.app = createApp({
      database,
      modules: [
        accounts({ secondFactor: 'optional', passwordCost: { logN: 4, r: 8, p: 1 }, ...accountsOptions }),
        audit(),
        ...modules,
        admin({ site: this.#files.url, ...adminOptions }),
      ],
      mount: {},
      throttleStorage: memoryStorage(),
      log: pino({ level: 'info', base: null }, { write: (line: string) => void this.logged.push(line) }),
      clock: this.clock,
      title: 'Shop',
      version: '1.2.3',
      ...options,
    });
  }

  async ready(): Promise<this> {
    await migrateApp(this.app);
    await this.app.ready();
    return this;
  }

  async close(): Promise<void> {
    await this.app.close();
    this.#files.remove();
  }

  async newUser(given: Partial<NewUser> = {}) {
    this.#people += 1;
    const installed = accountsOf(this.app.db);
    return createUser(this.app.db, { username: `user${this.#people}`, password: PASSWORD, ...given }, installed.management(null));
  }

  async call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    headers: Record<string, string> = {},
    payload?: object,
  ): Promise<Answer> {
    const response = await this.app.inject({
      method,
      url: path.startsWith('/') ? path : `/admin/${path}`,
      headers: { host: HOST, ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    const isJson = (response.headers['content-type'] ?? '').includes('json');
    this.answers.push(response.body);
    return { status: response.statusCode, body: isJson ? response.json() : null, text: response.body, headers: response.headers };
  }

  logIn(login: string, password = PASSWORD, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('POST', 'api/login', headers, { login, password });
  }

  async browser(given: Partial<NewUser> = { is_staff: true }): Promise<Browser> {
    const user = await this.newUser(given);
    const answer = await this.logIn(user.username);
    return { userId: user.id, cookie: cookieOf(answer), csrf: answer.body.csrf_token };
  }

  get(browser: Browser, path: string): Promise<Answer> {
    return this.call('GET', `api/${path}`, { cookie: browser.cookie });
  }

  send(browser: Browser, method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer> {
    return this.call(method, `api/${path}`, { cookie: browser.cookie, 'x-csrf-token': browser.csrf }, body);
  }

  act(browser: Browser, resource: string, action: string, ids: readonly string[], fields: object = {}): Promise<Answer> {
    return this.send(browser, 'POST', `resources/${resource}/actions/${action}`, { ids, fields });
  }
}

/** Stands for the built browser application. */
export function siteFolder(): { readonly url: URL; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'kit-admin-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(
    join(folder, 'index.html'),
    '<!doctype html><meta name="style-nonce" content="__STYLE_NONCE__"><script src="assets/app-1.js">',
  );
  writeFileSync(join(folder, 'assets', 'app-1.js'), `console.log(${JSON.stringify('x'.repeat(2000))})`);
  writeFileSync(join(folder, '.stamp'), 'not for browsers');
  return { url: pathToFileURL(`${folder}/`), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export function cookieOf({ headers }: Pick<Answer, 'headers'>): string {
  return String(headers['set-cookie'] ?? '').split(';')[0] ?? '';
}
