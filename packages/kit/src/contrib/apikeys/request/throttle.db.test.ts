import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../../test/key-app.ts';
import type { User } from '../../../auth/people/principal.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { rotateApiKey } from '../manage/rotate.ts';

describeDatabases(
  'ApiKeyRateThrottle',
  (database) => {
    let kit: KeyApp;
    let ada: User;
    beforeAll(async () => {
      kit = await startKeyApp(database.db);
      ada = await kit.user('ada');
    });
    beforeEach(() => kit.clock.advance(86_400_000));
    afterAll(() => kit.app.close());
    const ask = (raw: string) => kit.call('GET', '/v1/limited', { 'x-api-key': raw });
    const admitted = async (raw: string, requests: number) => {
      const answers = [];
      for (let request = 0; request < requests; request += 1) answers.push(await ask(raw));
      return answers;
    };

    test('each key has a budget of its own; over it 429 with Retry-After, and refused requests cost nothing', async () => {
      const [one, two] = [await kit.key(ada), await kit.key(ada)];
      expect((await admitted(one.raw, 5)).map(({ status }) => status)).toEqual([200, 200, 200, 429, 429]);
      expect((await ask(two.raw)).status).toBe(200);
      const refused = await ask(one.raw);
      expect(refused.body).toMatchObject({ status: 429, code: 'throttled' });
      expect(refused.headers['retry-after']).toBe('20');
      kit.clock.advance(20_000);
      expect((await admitted(one.raw, 2)).map(({ status }) => status)).toEqual([200, 429]);
    });

    test('every answer it governs carries the headers, also the refusal', async () => {
      const { raw } = await kit.key(ada);
      const [first, , , refused] = await admitted(raw, 4);
      expect(first?.headers).toMatchObject({
        'ratelimit-limit': '3',
        'ratelimit-remaining': '2',
        'ratelimit-reset': '20',
        'ratelimit-policy': '"api_key";q=3;w=60',
        ratelimit: '"api_key";r=2;t=20',
      });
      expect(refused?.headers).toMatchObject({ 'ratelimit-limit': '3', 'ratelimit-remaining': '0' });
    });

    test('the key’s own rate limit overrides the default', async () => {
      const { raw } = await kit.key(ada, { rateLimit: '5/min' });
      const answers = await admitted(raw, 6);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
      expect(answers[0]?.headers['ratelimit-limit']).toBe('5');
    });

    test('the budget survives rotation; a rotation that clears the limit brings the default back', async () => {
      const { id, raw } = await kit.key(ada, { rateLimit: '2/min' });
      await admitted(raw, 2);
      const rotated = await rotateApiKey(kit.db, id);
      expect((await ask(rotated.raw)).status).toBe(429);
      const cleared = await rotateApiKey(kit.db, id, { rateLimit: null });
      expect((await ask(cleared.raw)).headers['ratelimit-limit']).toBe('3');
    });

    test('requests without a key pass unmeasured', async () => {
      for (let request = 0; request < 6; request += 1) {
        const { status, headers } = await kit.call('GET', '/v1/limited', { 'x-act-as': 'ada' });
        expect([status, headers['ratelimit-limit']]).toEqual([200, undefined]);
      }
    });

    test('of 100 parallel requests against a 10/min key exactly 10 are admitted', async () => {
      const { raw } = await kit.key(ada, { rateLimit: '10/min' });
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask(raw)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(90);
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
