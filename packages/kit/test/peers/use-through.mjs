// Run in a project with the packed kit and one version of a library: node use-through.mjs <library> <database URL> <broker URL>. What kit does with it works.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { allowAny, Controller, createApp, hasRole, isAuthenticated, route } from 'kit';
import { openDatabase } from 'kit/db';

const [, , library, url, brokerUrl] = process.argv;

/** Publishes an event in an app with this destination; its worker sends it. Returns the id of the event once `read` has found a message. */
async function publishedThrough(destination, read) {
  const { publish, startWorker, webhooks } = await import('kit/contrib/webhooks');
  const { accounts } = await import('kit/contrib/accounts');
  const { migrateApp } = await import('kit');
  const modules = [accounts(), webhooks({ destinations: [destination], pollIntervalMs: 50 })];
  const app = createApp({ database: url, modules, mount: {}, log: { level: 'silent' } });
  await migrateApp(app);
  await app.ready();
  const worker = await startWorker(app.db);
  const { id } = await app.db.transaction((tx) => publish(tx, 'order.paid', { total: 12 }, { owner: 'nobody' }));
  const message = await eventually(read);
  await worker.stop();
  await app.close();
  const { type, data } = JSON.parse(message.body);
  assert.deepEqual({ id: message.id, type, data }, { id, type: 'order.paid', data: { total: 12 } });
}

/** What `read` returns once it returns something. For a minute. */
async function eventually(read) {
  for (const end = Date.now() + 60_000; ; await new Promise((done) => setTimeout(done, 200))) {
    const found = await read().catch((error) => {
      if (Date.now() > end) throw error;
    });
    if (found) return found;
    assert.ok(Date.now() < end, 'nothing was found in a minute');
  }
}

async function useNats() {
  const { natsDestination } = await import('kit/contrib/webhooks/nats');
  const { connect } = await import('@nats-io/transport-node');
  const { jetstreamManager } = await import('@nats-io/jetstream');
  const connection = await connect({ servers: brokerUrl });
  const { streams } = await jetstreamManager(connection);
  await streams.add({ name: 'EVENTS', subjects: ['events.>'], storage: 'file' });
  const destination = natsDestination({ name: 'broker', connection: { servers: brokerUrl } });
  await publishedThrough(destination, async () => {
    const message = await streams.getMessage('EVENTS', { seq: 1 });
    if (message === null) return null;
    assert.equal(message.subject, 'events.order.paid');
    return { id: message.header.get('webhook-id').slice('msg_'.length), body: new TextDecoder().decode(message.data) };
  });
  await connection.close();
}

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

  '@nats-io/jetstream': useNats,
  '@nats-io/transport-node': useNats,

  async amqplib() {
    const { rabbitMqDestination } = await import('kit/contrib/webhooks/rabbitmq');
    const { connect } = await import('amqplib');
    // RabbitMQ listens before it is ready.
    const connection = await eventually(() => connect(brokerUrl));
    const channel = await connection.createChannel();
    await channel.assertExchange('events', 'topic', { durable: true });
    await channel.assertQueue('events', { durable: true });
    await channel.bindQueue('events', 'events', 'order.*');
    await publishedThrough(rabbitMqDestination({ name: 'broker', url: brokerUrl, exchange: 'events' }), async () => {
      const message = await channel.get('events', { noAck: true });
      return message && { id: message.properties.messageId, body: message.content.toString() };
    });
    await connection.close();
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
