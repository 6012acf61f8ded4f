import { expect, test } from 'vitest';
import { describeOutbox, LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { createEndpoint } from './create-endpoint.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { rotateSecret, setSecret, signingSecret } from './endpoint-secret.ts';
import { replaceStored } from '../delivery/maintenance-store.ts';
import { generateSecret, publicKeyOf } from '../signing/signature.ts';
import { changeEndpoint, countEndpoints, findEndpoint } from './store.ts';
import { InvalidSignature, verifySignature } from '../receiving/verify.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';

describeOutbox(
  'signing secrets',
  (outbox) => {
    const { owner, endpoint, publish, clock } = outbox;

    /** Verifies the next request with a secret. */
    async function nextRequest(mine: string): Promise<(secret: string) => unknown> {
      await publish('order.paid', { owner: mine });
      await deliverDue(outbox.db);
      const request = outbox.receiver.of(`/${mine}`).at(-1);
      return (secret) => verifySignature(secret, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
    }

    test('a secret of one’s own replaces the old one at once', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const [old, chosen] = [signingSecret(outbox.db, target), generateSecret()];
      const changed = await outbox.db.transaction((tx) => setSecret(tx, target.id, chosen));
      expect(changed).toMatchObject({ previous_secret: null, previous_secret_expires_at: null });
      const verify = await nextRequest(mine);
      verify(chosen);
      expect(() => verify(old)).toThrow(InvalidSignature);
    });

    test('with an overlap of 0 a rotated secret stops signing at once', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      const rotated = await outbox.db.transaction((tx) => rotateSecret(tx, target.id));
      expect(rotated?.endpoint).toMatchObject({ previous_secret: null, previous_secret_expires_at: null });
      const verify = await nextRequest(mine);
      verify(rotated?.secret ?? '');
      expect(() => verify(signingSecret(outbox.db, target))).toThrow(InvalidSignature);
    });

    test('a secret that cannot sign is refused wherever it is given, and nothing changes', async () => {
      const mine = owner();
      const target = await endpoint({ owner: mine });
      for (const secret of ['', 'short', 'whsec_c2hvcnQ=', 'whpk_'.padEnd(48, 'A'), 'fernet:gAAAAAB', 7 as never]) {
        const input = { owner: mine, url: outbox.receiver.url('/'), events: ['*'], secret };
        await expect(outbox.db.transaction((tx) => createEndpoint(tx, input))).rejects.toMatchObject({ code: 'invalid_secret' });
        await expect(outbox.db.transaction((tx) => setSecret(tx, target.id, secret))).rejects.toMatchObject({ code: 'invalid_secret' });
        await expect(outbox.db.transaction((tx) => rotateSecret(tx, target.id, secret))).rejects.toMatchObject({ code: 'invalid_secret' });
      }
      expect(await countEndpoints(outbox.db, mine, '')).toBe(1);
      expect(await findEndpoint(outbox.db, target.id)).toEqual(target);
    });

    test('re-encryption that read a secret before a rotation leaves the new one alone', async () => {
      const target = await endpoint({ owner: owner() });
      const rotated = await outbox.db.transaction((tx) => rotateSecret(tx, target.id));
      expect(await replaceStored(outbox.db, target.id, 'secret', target.secret, 'fernet:of-the-old-one')).toBe(false);
      expect(signingSecret(outbox.db, (await findEndpoint(outbox.db, target.id)) ?? target)).toBe(rotated?.secret);
    });

    test('strict storage does not start without keys', async () => {
      const handle = await outbox.database.open({ clock });
      try {
        expect(() => useWebhooks(handle, { urlPolicy: LOOPBACK, strictSecrets: true })).toThrow(/WEBHOOK_SECRET_KEYS/);
      } finally {
        unbindWebhooks(handle);
      }
    });
  },
  { rotationOverlapMs: 0 },
);

describeOutbox('rotation', (outbox) => {
  const { owner, endpoint, publish, clock } = outbox;
  const HOUR_MS = 3_600_000;

  async function verifies(mine: string, secrets: readonly string[]): Promise<boolean[]> {
    await publish('order.paid', { owner: mine });
    await deliverDue(outbox.db);
    const request = outbox.receiver.of(`/${mine}`).at(-1);
    return secrets.map((secret) => {
      try {
        verifySignature(secret, request?.headers ?? {}, request?.body ?? '', { now: clock.now() });
        return true;
      } catch {
        return false;
      }
    });
  }
  const rotate = async (id: string) => (await outbox.db.transaction((tx) => rotateSecret(tx, id)))?.secret ?? '';

  test('keeps the kind of the signature', async () => {
    for (const signature of ['v1', 'v1a'] as const) {
      const mine = owner();
      const target = await endpoint({ owner: mine, signature });
      await rotate(target.id);
      const rotated = await findEndpoint(outbox.db, target.id);
      expect(rotated).toMatchObject({ signature });
      const secret = signingSecret(outbox.db, rotated ?? target);
      expect(secret.startsWith('whsk_')).toBe(signature === 'v1a');
      const key = signature === 'v1a' ? publicKeyOf(secret) : secret;
      expect(rotated?.public_key).toBe(signature === 'v1a' ? key : null);
      expect(await verifies(mine, [key])).toEqual([true]);
    }
  });

  test('keeps the kind of a row from before kinds were stored', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine, signature: 'v1a' });
    await changeEndpoint(outbox.db, target.id, { signature: null, public_key: null }, clock.now());
    await rotate(target.id);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ signature: 'v1a', public_key: expect.stringMatching(/^whpk_/) });
  });

  test('several times within the overlap keeps every secret until its own time', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const secrets = [signingSecret(outbox.db, target)];
    for (let hour = 0; hour < 3; hour++) {
      secrets.push(await rotate(target.id));
      clock.advance(HOUR_MS);
    }
    expect(await verifies(mine, secrets)).toEqual([true, true, true, true]);
    clock.advance(21 * HOUR_MS);
    expect(await verifies(mine, secrets)).toEqual([false, true, true, true]);
    clock.advance(HOUR_MS);
    expect(await verifies(mine, secrets)).toEqual([false, false, true, true]);
    clock.advance(2 * HOUR_MS);
    expect(await verifies(mine, secrets)).toEqual([false, false, false, true]);
    await rotate(target.id);
    expect(await findEndpoint(outbox.db, target.id)).toMatchObject({ older_secrets: null });
  });

  test('at the same time loses none of the secrets', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    const rotated = await Promise.all(Array.from({ length: 4 }, () => rotate(target.id)));
    expect(await verifies(mine, [signingSecret(outbox.db, target), ...rotated])).toEqual([true, true, true, true, true]);
  });

  test('is refused when too many secrets would sign, and possible again when one has ended', async () => {
    const mine = owner();
    const target = await endpoint({ owner: mine });
    for (let count = 0; count < 9; count++) await rotate(target.id);
    await expect(rotate(target.id)).rejects.toMatchObject({ code: 'too_many_secrets' });
    clock.advance(24 * HOUR_MS);
    expect(await rotate(target.id)).toMatch(/^whsec_/);
  });
});
