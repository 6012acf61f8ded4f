import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { expect, onTestFinished, test } from 'vitest';
import { failureOf } from '../../jobs/declare/failure.ts';
import { smtpMail } from './smtp-mail.ts';

const message = { to: 'ada@example.com', subject: 'Grüße', text: 'Your link:\nhttps://shop.example.com/#reset=abc\n' };
const options = { signal: new AbortController().signal };

/** A real SMTP server on loopback; what arrives is in `received`. */
async function server(given: Partial<SMTPServerOptions> = {}) {
  const received: { readonly from: string; readonly to: readonly string[]; readonly data: string }[] = [];
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          data: Buffer.concat(chunks).toString('utf8'),
        });
        done();
      });
    },
    ...given,
  });
  smtp.on('error', () => undefined);
  await new Promise<void>((done) => smtp.listen(0, '127.0.0.1', done));
  onTestFinished(() => new Promise<void>((done) => smtp.close(() => done())));
  const { port } = smtp.server.address() as AddressInfo;
  return { received, url: `smtp://127.0.0.1:${port}`, port };
}

test('a mail arrives with sender, recipient, subject and text', async () => {
  const { received, url } = await server();
  await smtpMail({ url, from: 'Shop <no-reply@example.com>' }).send(message, options);
  expect(received).toMatchObject([{ from: 'no-reply@example.com', to: ['ada@example.com'] }]);
  const { data = '' } = received[0] ?? {};
  expect(data).toMatch(/^Subject: =\?UTF-8\?/m);
  expect(data.replaceAll('=\r\n', '')).toContain(
    'https://shop.example.com/#reset=3Dabc'.replace('=3D', data.includes('quoted-printable') ? '=3D' : '='),
  );
});

test('an address cannot add recipients or headers', async () => {
  const { received, url } = await server();
  const port = smtpMail({ url, from: 'no-reply@example.com' });
  for (const to of [
    'ada@example.com, eve@evil.example',
    'ada@example.com\r\nBcc: eve@evil.example',
    'ada@example.com> RCPT TO:<eve@evil.example',
  ])
    await port.send({ ...message, to }, options).catch(() => undefined);
  await port.send({ ...message, subject: 'Hi\r\nBcc: eve@evil.example' }, options);
  for (const { to, data } of received) {
    expect(to).not.toContain('eve@evil.example');
    expect(data).not.toMatch(/^Bcc:/im);
  }
});

test('a recipient that does not exist is given up; a server that is down or busy is asked again', async () => {
  const refusing = await server({
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error('No such user'), { responseCode: 550 })),
  });
  const unknown = await smtpMail({ url: refusing.url, from: 'a@example.com' })
    .send(message, options)
    .catch((error: unknown) => error);
  expect(failureOf(unknown).isPermanent).toBe(true);
  const busy = await server({ onRcptTo: (_address, _session, done) => done(Object.assign(new Error('Later'), { responseCode: 451 })) });
  const later = await smtpMail({ url: busy.url, from: 'a@example.com' })
    .send(message, options)
    .catch((error: unknown) => error);
  expect(failureOf(later).isPermanent).toBe(false);
  const down = await smtpMail({ url: 'smtp://127.0.0.1:1', from: 'a@example.com' })
    .send(message, options)
    .catch((error: unknown) => error);
  expect(failureOf(down).isPermanent).toBe(false);
});

test('the password of a URL that cannot be used is not in the message', () => {
  expect(() => smtpMail({ url: 'http://user:hunter2secret@mail.example.com', from: 'a@example.com' })).toThrow(/smtps:\/\/user:password@/);
  expect(() => smtpMail({ url: 'http://user:hunter2secret@mail.example.com', from: 'a@example.com' })).not.toThrow(/hunter2secret/);
});
