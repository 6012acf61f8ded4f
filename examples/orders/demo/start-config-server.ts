import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigServer, formatEntry, loadServerConfig } from '@kit/config-server';
import { Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { freePort } from './free-port.ts';

export interface DemoConfigServer {
  readonly url: string;
  readonly token: string;
  /** The file behind /orders/development: save a change and the running API follows it. */
  readonly file: string;
  /** Holds the token, so that a printed command need not. */
  readonly tokenFile: string;
  stop(): Promise<void>;
}

/** Writes what a first start needs and serves it. The server's own file holds only the digest of the token. */
export async function startConfigServer(dataFolder: string): Promise<DemoConfigServer> {
  const folder = join(dataFolder, 'config');
  mkdirSync(folder, { recursive: true });
  const [file, tokenFile, serverFile] = [join(folder, 'orders.toml'), join(folder, 'token'), join(folder, 'server.toml')];
  if (!existsSync(file)) copyFileSync(join(import.meta.dirname, '../config/orders.toml'), file);
  undoTour(file);
  if (!existsSync(tokenFile)) writeFileSync(tokenFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  await writeSecrets(folder);
  const token = readFileSync(tokenFile, 'utf8');
  writeFileSync(serverFile, serverToml(await freePort(8888), token));
  const log = join(dataFolder, 'config-server.log');
  const server = await ConfigServer.start(loadServerConfig(serverFile), {
    audit: (entry) => appendFileSync(log, `${formatEntry(entry)}\n`),
    log: (line) => appendFileSync(log, `${line}\n`),
  });
  return { url: `http://127.0.0.1:${server.address?.port}`, token, file, tokenFile, stop: () => server.stop() };
}

/**
 * A key for a carrier's API that is in no file in plain text: `secrets.toml` could be in Git. `config-secrets encrypt` does the same for a
 * file that exists; here the value is random, so it never is in one.
 */
async function writeSecrets(folder: string): Promise<void> {
  const [identityFile, secretsFile] = [join(folder, 'identity.txt'), join(folder, 'secrets.toml')];
  if (existsSync(identityFile) && existsSync(secretsFile)) return;
  const identity = await generateX25519Identity();
  writeFileSync(identityFile, `${identity}\n`, { mode: 0o600 });
  const encrypter = new Encrypter();
  encrypter.addRecipient(await identityToRecipient(identity));
  const bound = { file: 'secrets.toml', key: 'orders.carrier_key', value: randomBytes(16).toString('hex') };
  const ciphertext = Buffer.from(await encrypter.encrypt(JSON.stringify(bound))).toString('base64');
  writeFileSync(
    secretsFile,
    `# Made by the first start. See the value with: npx config-secrets decrypt\n[orders]\ncarrier_key = "ENC[age,${ciphertext}]"\n`,
  );
}

/** The fourth printed command of an earlier start made every order of the first one too large, and kept a backup. Other edits stay. */
function undoTour(file: string): void {
  const backup = `${file}.bak`;
  if (!existsSync(backup)) return;
  const before = readFileSync(backup, 'utf8');
  if (readFileSync(file, 'utf8') === before.replace(/^quantity_max = .*/m, 'quantity_max = 2')) renameSync(backup, file);
}

function serverToml(port: number, token: string): string {
  return `[server]
bind = "127.0.0.1:${port}"
watch_debounce_ms = 100
explain_lines = true

[[server.sections]]
application = "orders"
profile = "development"
files = ["orders.toml", "secrets.toml"]

[[server.clients]]
name = "orders-api"
token_sha256 = "${createHash('sha256').update(token).digest('hex')}"
applications = ["orders"]

[server.secrets]
identities = "identity.txt"
`;
}
