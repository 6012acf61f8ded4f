// What does an access token cost: jwtBearer() with a user of accounts(), against bare jose with the same key, the same rules and the same
// statement that finds the user? In this process on SQLite, where the statement is cheapest and everything else counts most; tokens are signed
// with ES256 and RS256, 20 at a time. How much cheaper is an invalid token?
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, exportJWK, jwtVerify, type JSONWebKeySet } from 'jose';
import { createApp, migrateApp, type App, type Authenticator } from 'kit';
import { accounts } from 'kit/contrib/accounts';
import { jwtBearer } from 'kit/contrib/jwt';
import { countQueries } from 'kit/db';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';

const AT_ONCE = 20;
const AUDIENCE = 'orders';
const ALGORITHMS = { ES256: ['ec', { namedCurve: 'P-256' }], RS256: ['rsa', { modulusLength: 2048 }] } as const;
type Algorithm = keyof typeof ALGORITHMS;

/** Keys over loopback, as an identity provider publishes them. */
async function startProvider(alg: Algorithm) {
  const [type, options] = ALGORITHMS[alg];
  const { privateKey, publicKey } = generateKeyPairSync(type as 'ec', options as { namedCurve: string });
  const keys: JSONWebKeySet = { keys: [{ ...(await exportJWK(publicKey)), kid: 'first', alg, use: 'sig' }] };
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(keys));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer,
    aud: AUDIENCE,
    sub: 'alice-1',
    iat: now,
    exp: now + 86_400,
    scope: 'orders:read orders:write',
    preferred_username: 'alice',
  };
  const signed = `${encoded({ alg, kid: 'first', typ: 'at+jwt' })}.${encoded(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), alg === 'ES256' ? { key: privateKey, dsaEncoding: 'ieee-p1363' } : privateKey);
  return { issuer, keys, token: `${signed}.${signature.toString('base64url')}`, close: () => server.close() };
}

type Provider = Awaited<ReturnType<typeof startProvider>>;

async function kitFor({ issuer }: Provider, alg: Algorithm): Promise<{ app: App; authenticator: Authenticator }> {
  const authenticator = jwtBearer({ issuer, jwksUri: `${issuer}/keys`, audience: AUDIENCE, algorithms: [alg], provision: true });
  const app = createApp({
    database: 'sqlite::memory:',
    modules: [accounts()],
    authenticators: [authenticator],
    mount: {},
    log: { level: 'silent' },
  });
  await migrateApp(app);
  await app.ready();
  return { app, authenticator };
}

async function compare(context: BenchmarkContext, alg: Algorithm): Promise<Ratio[]> {
  context.print(`\n${alg}`);
  const provider = await startProvider(alg);
  const { app, authenticator } = await kitFor(provider, alg);
  const { db } = app;
  const headers = { authorization: `Bearer ${provider.token}` };
  const authenticate = (given: Readonly<Record<string, string>>) =>
    authenticator.authenticate({ method: 'GET', url: '/', headers: given, clientAddress: '127.0.0.1', db });
  // The first request creates the user.
  await authenticate(headers);
  const { queries } = await countQueries(async () => authenticate(headers));
  const [statement] = queries;
  if (statement === undefined || queries.length !== 1) throw new Error(`a token costs ${queries.length} statements`);
  const keySet = createLocalJWKSet(provider.keys);
  const rules = { issuer: provider.issuer, audience: AUDIENCE, algorithms: [alg], requiredClaims: ['exp', 'iat', 'sub'] };
  const bare = async (): Promise<void> => {
    const { payload } = await jwtVerify(headers.authorization.slice('Bearer '.length), keySet, rules);
    const [user] = await db.query<{ is_active: boolean }>(statement.sql, [payload.iss, payload.sub]);
    if (user === undefined) throw new Error('the user is not found');
  };
  const kit = async (): Promise<void> => {
    if ((await authenticate(headers)) === null) throw new Error('the token is not accepted');
  };
  const garbage = { authorization: 'Bearer eyJhbGciOiJub25lIn0.not-a-token.' };
  const refused = async (): Promise<void> => {
    try {
      await authenticate(garbage);
    } catch {
      // Rejected, as it should be.
    }
  };
  const contender = (name: string, operation: () => Promise<unknown>) => ({
    name,
    measure: (seconds: number) => ratePerSecond(operation, seconds, AT_ONCE),
  });
  const result = await contest(context, [
    contender('jwtBearer', kit),
    contender('bare jose and the same statement', bare),
    contender('no token', refused),
  ]);
  await app.close();
  provider.close();
  return [
    { name: `login-jwt-${alg.toLowerCase()}`, value: ratioOf(result, 'jwtBearer', 'bare jose and the same statement'), goal: 0.85 },
    { name: `login-jwt-garbage-${alg.toLowerCase()}`, value: ratioOf(result, 'no token', 'jwtBearer'), goal: 1 },
  ];
}

export default defineBenchmark({
  name: 'login-jwt',
  question: 'access tokens verified per second, against bare jose with the same user lookup',
  async run(context) {
    const ratios: Ratio[] = [];
    for (const alg of ['ES256', 'RS256'] as const) ratios.push(...(await compare(context, alg)));
    return ratios;
  },
});
