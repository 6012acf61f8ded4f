// Run in a project with the packed kit and one version of a library: node use-through.mjs <library> <database URL>. What kit does with it works.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { allowAny, Controller, createApp, hasRole, isAuthenticated, route } from 'kit';
import { openDatabase } from 'kit/db';

const [, , library, url] = process.argv;

const uses = {
  async kysely() {
    const { kyselyOf } = await import('kit/kysely');
    const { sql } = await import('kysely');
    const db = await openDatabase(url);
    const one = (handle) => sql`select 1 as one`.execute(kyselyOf(handle));
    assert.deepEqual((await one(db)).rows, [{ one: 1 }]);
    await db.transaction(async (tx) => assert.deepEqual((await one(tx)).rows, [{ one: 1 }]));
    await db.close();
  },

  async 'better-auth'() {
    const { betterAuth, joinedKysely, kitPlugin } = await import('kit/contrib/better-auth');
    const { migrateApp } = await import('kit');
    const { betterAuth: createAuth } = await import('better-auth');
    const { admin, organization } = await import('better-auth/plugins');
    const db = await openDatabase(url);
    const auth = createAuth({
      baseURL: 'https://app.example.com',
      basePath: '/auth',
      secret: 'a-secret-of-the-tests-with-more-than-32-characters',
      database: { db: joinedKysely(db), type: db.dialect, transaction: true },
      emailAndPassword: { enabled: true, revokeSessionsOnPasswordReset: true },
      advanced: { database: { validateSchema: false }, disableOriginCheck: false },
      plugins: [organization(), admin(), kitPlugin()],
    });
    class Me extends Controller {
      me = route.get('/', { permission: hasRole('owner') }, () => undefined);
    }
    const app = createApp({ database: db, modules: [betterAuth(auth)], mount: { '/v1': { '/me': Me } }, log: { level: 'silent' } });
    await migrateApp(app);
    await app.ready();
    const origin = 'https://app.example.com';
    const post = (path, payload, cookie = '') =>
      app.inject({ method: 'POST', url: `/auth/${path}`, payload, headers: { origin, ...(cookie === '' ? {} : { cookie }) } });
    const signedUp = await post('sign-up/email', { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada' });
    assert.equal(signedUp.statusCode, 200, signedUp.body);
    const cookie = [signedUp.headers['set-cookie']]
      .flat()
      .map((line) => line.split(';')[0])
      .join('; ');
    assert.equal((await post('organization/create', { name: 'Acme', slug: 'acme' }, cookie)).statusCode, 200);
    const me = async () => (await app.inject({ url: '/v1/me', headers: { cookie, 'x-organization': 'acme' } })).statusCode;
    assert.equal(await me(), 204);
    await db.query('update "user" set "banned" = $1', [db.dialect === 'sqlite' ? 1 : true]);
    assert.equal(await me(), 401);
    await app.close();
    await db.close();
  },

  async jose() {
    const { jwtBearer } = await import('kit/contrib/jwt');
    const { exportJWK, generateKeyPair, SignJWT } = await import('jose');
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }] };
    const provider = createServer((_, response) => response.setHeader('content-type', 'application/json').end(JSON.stringify(keys)));
    await new Promise((done) => provider.listen(0, '127.0.0.1', done));
    const issuer = `http://127.0.0.1:${provider.address().port}`;
    class Me extends Controller {
      me = route.get('/', { permission: isAuthenticated }, () => undefined);
    }
    const user = { id: 'ada', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };
    const app = createApp({
      database: url,
      authenticators: [jwtBearer({ issuer, audience: 'api', jwksUri: `${issuer}/keys`, find: () => user })],
      mount: { '/v1': { '/me': Me } },
    });
    const token = new SignJWT({}).setProtectedHeader({ alg: 'ES256', kid: 'one' }).setIssuer(issuer).setAudience('api').setSubject('ada');
    const bearer = await token.setIssuedAt().setExpirationTime('5m').sign(privateKey);
    const { statusCode } = await app.inject({ url: '/v1/me', headers: { authorization: `Bearer ${bearer}` } });
    assert.equal(statusCode, 204);
    await app.close();
    provider.close();
  },

  async nodemailer() {
    const { smtpMail } = await import('kit/contrib/accounts/smtp');
    const lines = [];
    const server = createSocketServer((socket) => {
      let isData = false;
      socket.write('220 test\r\n');
      socket.on('data', (chunk) => {
        lines.push(String(chunk));
        if (!isData || String(chunk).endsWith('\r\n.\r\n')) {
          const answer = isData ? '250 stored' : /^DATA/i.test(chunk) ? '354 go on' : /^QUIT/i.test(chunk) ? '221 bye' : '250 ok';
          isData = /^DATA/i.test(chunk);
          socket.write(`${answer}\r\n`);
        }
      });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const port = smtpMail({ url: `smtp://127.0.0.1:${server.address().port}`, from: 'shop@example.com' });
    await port.send({ to: 'ada@example.com', subject: 'Hello', text: 'A link.' });
    assert.match(lines.join(''), /Subject: Hello/);
    server.close();
    process.exit(0);
  },

  async '@modelcontextprotocol/server'() {
    const { mcp } = await import('kit/contrib/mcp');
    class Sums extends Controller {
      one = route.get('/', { permission: allowAny, summary: 'Returns one', tool: true }, () => ({ one: 1 }));
    }
    const app = createApp({ database: url, modules: [mcp()], mount: { '/v1': { '/sums': Sums } } });
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', host: 'localhost' };
    const response = await app.inject({ method: 'POST', url: '/mcp', headers, payload: message });
    assert.ok(response.statusCode < 500, response.body);
    await app.close();
  },
};

await uses[library]();
