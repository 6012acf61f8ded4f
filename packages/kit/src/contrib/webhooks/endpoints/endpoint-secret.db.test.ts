import { expect, test } from 'vitest';
import { describeOutbox, LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { createEndpoint } from './create-endpoint.ts';
import { deliverDue } from '../delivery/deliver.ts';
import { rotateSecret, setSecret, signingSecret } from './endpoint-secret.ts';
import { replaceStored } from '../delivery/maintenance-store.ts';
import { generateSecret } from '../signing/signature.ts';
import { countEndpoints, findEndpoint } from '../store.ts';
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
