import { betterAuth as createAuth, type BetterAuthOptions as InstanceOptions } from 'better-auth';
import { admin, bearer, organization, twoFactor } from 'better-auth/plugins';
import { type App, type AppOptions, createApp, migrateApp, type Module } from '../../src/app/index.ts';
import { ApiKeyController, apiKeys, type ApiKeyOptions } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { betterAuth, type BetterAuthOptions, joinedKysely, kitPlugin } from '../../src/contrib/better-auth/index.ts';
import type { Database } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { allowAny, hasRecentLogin, hasRole, isAuthenticated, isStaff } from '../../src/permissions/index.ts';
import { memoryStorage } from '../../src/throttle/index.ts';

export const ORIGIN = 'https://app.example.com';
export const SECRET = 'a-secret-of-the-tests-with-more-than-32-characters';

/** A mail that better-auth asked the application to send. */
export interface Mail {
  readonly to: string;
  readonly kind: 'verify' | 'reset' | 'invitation';
  readonly url: string;
}

const Json = jsonSchema<object>({});
const AnyQuery = jsonSchema<object>({ type: 'object', additionalProperties: true });

export class WhoController extends Controller {
  who = route.get('/', { permission: isAuthenticated, response: Json }, async ({ user, principal, caller }) => {
    const { tenant, membership } = await caller();
    return {
      user: user.username,
      scheme: principal.scheme,
      tenant,
      roles: membership?.roles ?? null,
      by: principal.impersonatedBy ?? null,
    };
  });
  of = route.get('/of', { permission: isAuthenticated, query: AnyQuery, response: Json }, async ({ caller }) => {
    const { tenant, membership } = await caller();
    return { tenant, roles: membership?.roles ?? null };
  });
  change = route.post('/', { permission: isAuthenticated, response: Json }, ({ user }) => ({ user: user.username }));
  admins = route.get('/admins', { permission: hasRole('admin', 'owner'), response: Json }, () => ({}));
  staff = route.get('/staff', { permission: isStaff, response: Json }, () => ({}));
  recent = route.get('/recent', { permission: isAuthenticated.and(hasRecentLogin), response: Json }, () => ({}));
  open = route.get('/open', { permission: allowAny, response: Json }, async ({ caller }) => ({ tenant: (await caller()).tenant }));
}

/** Fast instead of strong: these tests are not about hashing. */
export const plainPasswords = {
  hash: async (password: string) => `plain:${password}`,
  verify: async ({ hash, password }: { hash: string; password: string }) => hash === `plain:${password}`,
};

export function instanceOptions(db: Database, mails: Mail[] = []) {
  const send = (kind: Mail['kind']) => async (mail: { readonly user: { readonly email: string }; readonly url: string }) => {
    mails.push({ kind, to: mail.user.email, url: mail.url });
  };
  return {
    baseURL: ORIGIN,
    basePath: '/auth',
    secret: SECRET,
    database: { db: joinedKysely(db), type: db.dialect, transaction: true },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: true,
      revokeSessionsOnPasswordReset: true,
      sendResetPassword: send('reset'),
      password: plainPasswords,
    },
    emailVerification: { sendVerificationEmail: send('verify'), sendOnSignUp: true },
    user: { deleteUser: { enabled: true } },
    verification: { storeIdentifier: 'hashed' },
    advanced: { database: { validateSchema: false }, disableOriginCheck: false },
    rateLimit: { enabled: false },
    logger: { disabled: true },
    telemetry: { enabled: false },
    plugins: [
      organization({
        sendInvitationEmail: async ({ email, id }) => void mails.push({ kind: 'invitation', to: email, url: id }),
      }),
      twoFactor(),
      admin(),
      bearer({ requireSignature: true }),
      kitPlugin(),
    ],
  } satisfies InstanceOptions;
}

export interface AuthApp {
  readonly app: App;
  readonly mails: readonly Mail[];
  readonly auth: ReturnType<typeof createAuth>;
}

export interface AuthAppOptions {
  /** Changes of the instance's options. */
  readonly instance?: (options: ReturnType<typeof instanceOptions>) => InstanceOptions;
  readonly module?: BetterAuthOptions;
  readonly modules?: readonly Module[];
  readonly apiKeys?: ApiKeyOptions;
  readonly app?: Partial<AppOptions>;
}

/** A whole app on this database, with the real package. */
export async function startAuthApp(db: Database, options: AuthAppOptions = {}): Promise<AuthApp> {
  const mails: Mail[] = [];
  const given = instanceOptions(db, mails);
  const auth = createAuth((options.instance?.(given) ?? given) as InstanceOptions);
  const app = createApp({
    database: db,
    modules: [betterAuth(auth, options.module), apiKeys(options.apiKeys), audit(), ...(options.modules ?? [])],
    mount: { '/v1': { '/who': WhoController, '/api-keys': ApiKeyController } },
    throttleStorage: memoryStorage(),
    log: { level: 'silent' },
    ...options.app,
  });
  try {
    await migrateApp(app);
    await app.ready();
  } catch (error) {
    await app.close();
    throw error;
  }
  return { app, mails, auth };
}

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever was answered
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
}

type Headers = Record<string, string>;

/** A browser: it keeps cookies and sends the origin of its page. */
export class Browser {
  readonly cookies = new Map<string, string>();
  app: App;
  origin: string | null = ORIGIN;

  constructor(app: App) {
    this.app = app;
  }

  async call(method: string, url: string, body?: unknown, headers: Headers = {}): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await this.app.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(cookie === '' ? {} : { cookie }),
        ...(this.origin === null || method === 'GET' ? {} : { origin: this.origin }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    for (const line of [response.headers['set-cookie'] ?? []].flat()) {
      const [pair = '', ...attributes] = line.split('; ');
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (attributes.some((each) => /^max-age=0$/i.test(each))) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return { status: response.statusCode, body: parsed(response.body), text: response.body, headers: response.headers };
  }

  get(url: string, headers?: Headers): Promise<Answer> {
    return this.call('GET', url, undefined, headers);
  }

  post(url: string, body: unknown = {}, headers?: Headers): Promise<Answer> {
    return this.call('POST', url, body, headers);
  }

  signUp(email: string, password = 'correct horse battery'): Promise<Answer> {
    return this.post('/auth/sign-up/email', { email, password, name: email.split('@')[0] });
  }

  signIn(email: string, password = 'correct horse battery'): Promise<Answer> {
    return this.post('/auth/sign-in/email', { email, password });
  }

  /** Opens the link of the newest mail of a kind to an address. */
  async follow(mails: readonly Mail[], kind: Mail['kind'], to: string): Promise<Answer> {
    const mail = mails.findLast((each) => each.kind === kind && each.to === to);
    if (mail === undefined) throw new Error(`no ${kind} mail to ${to}`);
    return this.get(mail.url.slice(ORIGIN.length));
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return text;
  }
}

/** A verified user with a session. */
export async function member({ app, mails }: Pick<AuthApp, 'app' | 'mails'>, email: string): Promise<Browser> {
  const browser = new Browser(app);
  const signedUp = await browser.signUp(email);
  if (signedUp.status !== 200) throw new Error(`sign-up: ${signedUp.text}`);
  await browser.follow(mails, 'verify', email);
  const signedIn = await browser.signIn(email);
  if (signedIn.status !== 200) throw new Error(`sign-in: ${signedIn.text}`);
  return browser;
}

export async function makeAdmin(db: Database, email: string): Promise<void> {
  await db.query(`update "user" set "role" = 'admin,user' where "email" = $1`, [email]);
}

export async function userId(db: Database, email: string): Promise<string> {
  const [row] = await db.query<{ id: string }>('select "id" from "user" where "email" = $1', [email]);
  if (row === undefined) throw new Error(`no user ${email}`);
  return row.id;
}
