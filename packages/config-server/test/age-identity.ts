import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as age from 'age-encryption';
import { Keyring } from '../src/secrets/keyring.ts';
import { sealValue } from '../src/secrets/encrypted-value.ts';

export interface TestIdentity {
  readonly identity: string;
  readonly recipient: string;
  readonly keyring: Keyring;
}

export async function newIdentity(): Promise<TestIdentity> {
  const identity = await age.generateX25519Identity();
  return { identity, recipient: await age.identityToRecipient(identity), keyring: new Keyring(age, [identity]) };
}

/** Writes an identity file as age-keygen does. */
export function writeIdentity(folder: string, name: string, ...identities: readonly TestIdentity[]): string {
  const path = join(folder, name);
  const text = identities.map(({ identity, recipient }) => `# public key: ${recipient}\n${identity}\n`).join('');
  writeFileSync(path, text, { mode: 0o600 });
  chmodSync(path, 0o600);
  return path;
}

export function seal({ recipient }: TestIdentity, file: string, key: string, value: unknown): Promise<string> {
  return sealValue(age, { file, key, value }, [recipient]);
}
