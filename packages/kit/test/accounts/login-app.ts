import { z } from 'zod';
import { type App, createApp, migrateApp, type SettingsInput } from '../../src/app/index.ts';
import {
  AccountController,
  accounts,
  type AccountsOptions,
  createUser,
  type MailMessage,
  openSession,
} from '../../src/contrib/accounts/index.ts';
import type { NewUser } from '../../src/contrib/accounts/users/manage-users.ts';
import { ApiKeyController, apiKeys } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { jobs, runDueJobs } from '../../src/contrib/jobs/index.ts';
import { metrics } from '../../src/contrib/metrics/index.ts';
import { PersonalDataController, personalData } from '../../src/contrib/personal/index.ts';
import type { Database } from '../../src/db/engine/db.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { HealthController } from '../../src/middleware/health.ts';
import { allowAny, isAuthenticated, isStaff, isSuperuser } from '../../src/permissions/index.ts';
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import { oneTimeCode } from '../../src/testing/one-time-code.ts';
import { memoryStorage, type ThrottleStorage } from '../../src/throttle/index.ts';

export const PASSWORD = 'correct horse battery';

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
  /** What `Set-Cookie` says; empty without one. */
  readonly cookie: string;
}

class DeskController extends Controller {
  staff = route.get('/staff', { permission: isStaff }, () => undefined);
  superuser = route.get('/superuser', { permission: isSuperuser }, () => undefined);
  anyone = route.get('/anyone', { permission: isAuthenticated }, () => undefined);
}

/** A login of the application's own, such as the end of single sign-on. */
class OwnLoginController extends Controller {
  enter = route.get(
    '/:id/:factor',
    { permission: allowAny, auth: [], params: z.object({ id: z.string(), factor: z.string() }), response: jsonSchema<object>({}) },
    (context) => openSession(context.db, { id: context.params.id }, context, { secondFactor: context.params.factor === 'proved' }),
  );
}

/** A browser: it keeps its cookie, and sends the CSRF token it was given last. */
export class Browser {
  cookie = '';
  csrf = '';
  readonly #app: LoginApp;
  readonly #agent: string;

  constructor(app: LoginApp, agent = 'Browser/1.0') {
    this.#app = app;
    this.#agent = agent;
  }

  async send(method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await this.#app.call(method, path, payload, {
      'user-agent': this.#agent,
      ...(this.cookie === '' ? {} : { cookie: this.cookie }),
      ...(this.csrf === '' ? {} : { 'x-csrf-token': this.csrf }),
      ...headers,
    });
    const set = /^[^;]*/.exec(answer.cookie)?.[0] ?? '';
    if (set !== '') this.cookie = set;
    if (typeof answer.body.csrf_token === 'string') this.csrf = answer.body.csrf_token;
    return answer;
  }

  get = (path: string) => this.send('GET', path);
  post = (path: string, payload?: object, headers?: Record<string, string>) => this.send('POST', path, payload, headers);
  logIn = (login: string, code?: string, password = PASSWORD) =>
    this.post('/account/login', { login, password, ...(code === undefined ? {} : { code }) });
}

/** An application with everything about logins, over HTTP, on a given database. */
export class LoginApp {
  readonly clock: FakeClock;
  readonly app: App;
  readonly mails: MailMessage[] = [];
  /** Thrown instead of sending. */
  mailFault: Error | null = null;
  readonly logged: string[] = [];
  readonly #database: Database;
  #budgets = memoryStorage();
  #people = 0;

  constructor(
    database: Database,
    options: AccountsOptions = {},
    clock: FakeClock = fakeClock('2026-06-01T12:00:00Z'),
    settings: SettingsInput = {},
  ) {
    this.clock = clock;
    this.#database = database;
    const throttleStorage: ThrottleStorage = {
      take: (...args) => this.#budgets.take(...args),
      giveBack: (...args) => this.#budgets.giveBack(...args),
    };
    this.app = createApp({
      title: 'Shop',
      database,
      modules: [
        accounts({
          passwordCost: { logN: 4, r: 8, p: 1 },
          signUp: 'invitation',
          mail: {
            linkUrl: 'https://shop.example.com/account',
            send: async (message) => {
              if (this.mailFault !== null) throw this.mailFault;
              this.mails.push(message);
            },
          },
          ...options,
        }),
        apiKeys(),
        audit(),
        jobs(),
        personalData(),
        metrics({ path: '/metrics', permission: allowAny }),
      ],
      mount: {
        '/account': { '/': AccountController },
        '/desk': { '/': DeskController },
        '/api-keys': { '/': ApiKeyController },
        '/personal-data': { '/': PersonalDataController },
        '/sso': { '/': OwnLoginController },
        '/': { '/health': HealthController },
      },
      throttleStorage,
      settings,
      log: {
        level: 'trace',
        transport: undefined,
        hooks: { logMethod: (args: unknown[]) => void this.logged.push(JSON.stringify(args)) },
      } as never,
      clock,
    });
  }

  static async migrate(db: Database): Promise<void> {
    const { app } = new LoginApp(db);
    await migrateApp(app);
    await app.close();
  }

  async ready(): Promise<this> {
    await this.app.ready();
    return this;
  }

  /** New budgets of throttles: the clock stands still, so one test's logins would throttle the next's. */
  unthrottle(): void {
    this.#budgets = memoryStorage();
  }

  async call(method: 'GET' | 'POST' | 'DELETE', path: string, payload?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await this.app.inject({
      method,
      url: path,
      headers: { host: 'shop.example.com', ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    const body: unknown = response.body === '' ? {} : JSON.parse(response.body);
    return {
      status: response.statusCode,
      body,
      text: response.body,
      headers: response.headers,
      cookie: String(response.headers['set-cookie'] ?? ''),
    };
  }

  newUser(given: Partial<NewUser> = {}) {
    this.#people += 1;
    const username = `user${this.#people}`;
    return createUser(this.#database, { username, email: `${username}@example.com`, password: PASSWORD, ...given });
  }

  browser = (agent?: string) => new Browser(this, agent);

  async loggedIn(login: string, agent?: string): Promise<Browser> {
    const browser = this.browser(agent);
    const answer = await browser.logIn(login);
    if (answer.status !== 200) throw new Error(answer.text);
    return browser;
  }

  code = (secret: string) => oneTimeCode(secret, this.clock.now());

  /** Sets up one-time codes for the browser's user. The code that confirmed them is used up. */
  async setUpCodes(browser: Browser): Promise<{ readonly secret: string; readonly recovery: readonly string[] }> {
    const { secret } = (await browser.post('/account/factor')).body;
    const confirmed = await browser.post('/account/factor/confirm', { code: this.code(secret) });
    if (confirmed.status !== 200) throw new Error(confirmed.text);
    return { secret, recovery: confirmed.body.recovery_codes };
  }

  runJobs = () => runDueJobs(this.#database);

  /** The token in the newest mail. */
  linkToken(): string {
    return /#(?:reset|invitation|email)=([A-Za-z0-9_-]+)/.exec(this.mails.at(-1)?.text ?? '')?.[1] ?? '';
  }
}
