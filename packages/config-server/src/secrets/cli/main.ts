import { readSync } from 'node:fs';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { readIdentityPaths } from '../../config/read-secrets.ts';
import { LoadFailure } from '../../document/load-failure.ts';
import { oneLine } from '../../one-line.ts';
import { packageVersion } from '../../package-version.ts';
import { loadAge, type AgeLibrary } from '../age-library.ts';
import { NotEditable } from '../files/place.ts';
import { Keyring } from '../keyring.ts';
import { RULE_NAMES, type SopsRule } from '../sops-rules.ts';
import { decrypt, edit, encrypt, rekey, type CommandContext, type CommandOptions } from './commands.ts';
import { editInEditor } from './edit-in-editor.ts';

const USAGE = `usage: config-secrets encrypt <file> [--key <path>]… [--recipient <age1…>]… [--recipients-file <file>]…
       config-secrets decrypt <file> [--stdout]
       config-secrets rekey   <file> [--recipient <age1…>]… [--recipients-file <file>]…
       config-secrets edit    <file> [--key <path>]…

  encrypt   the whole file as a SOPS document, or with --key single values as ENC[age,…]
  decrypt   every value, in place or to standard output
  rekey     encrypt for other recipients; a removed recipient can read nothing that is written from then on
  edit      decrypt, open VISUAL or EDITOR, encrypt what changed

  --identity <path>           file or folder with age identities, to decrypt (or CONFIG_SECRETS_IDENTITY)
  --encrypted-regex <regex>   encrypt only values below keys that match; also --unencrypted-regex, --encrypted-suffix, --unencrypted-suffix
  --name <path>               the file that single values are bound to (default: from the folder of .age-recipients, or the file's name)

Recipients that are not given are taken from a file .age-recipients beside or above the file.
`;

const EXIT_CLEAN = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const COMMANDS = { encrypt, decrypt, rekey, edit };

const RULE_OPTIONS = Object.fromEntries(RULE_NAMES.map((name) => [name.replace('_', '-'), { type: 'string' }])) as Record<
  string,
  { type: 'string' }
>;

/** An option that a command ignored would mislead: `decrypt --key` would decrypt everything, `encrypt --stdout` would change the file. */
const OPTIONS: Readonly<Record<keyof typeof COMMANDS, readonly string[]>> = {
  encrypt: ['key', 'recipient', 'recipients-file', 'name', ...Object.keys(RULE_OPTIONS)],
  decrypt: ['identity', 'stdout'],
  rekey: ['recipient', 'recipients-file', 'identity'],
  edit: ['key', 'recipient', 'recipients-file', 'identity', 'name'],
};

async function main(parameters: readonly string[]): Promise<number> {
  const [first] = parameters;
  if (parameters.length === 1 && first === '--help') return print(USAGE);
  if (parameters.length === 1 && first === '--version') return print(`${packageVersion()}\n`);
  const parsed = parse(parameters);
  if (parsed === undefined || 'problem' in parsed) {
    process.stderr.write(parsed === undefined ? USAGE : `config-secrets: ${parsed.problem}\n${USAGE}`);
    return EXIT_USAGE;
  }
  const { command, options, identities } = parsed;
  try {
    const age = loadAge();
    if (age === undefined) throw new NotEditable('the package age-encryption cannot be loaded; install it beside this one');
    const done = await COMMANDS[command](options, contextFor(age, identities));
    // The result may be the decrypted file: nothing else belongs on standard output then.
    if (done !== undefined) print(`config-secrets: ${oneLine(done)}\n`);
    return EXIT_CLEAN;
  } catch (error) {
    process.stderr.write(`config-secrets: ${oneLine(`${options.file}: ${sentenceOf(error)}`)}\n`);
    return EXIT_FAILED;
  }
}

interface Parsed {
  readonly command: keyof typeof COMMANDS;
  readonly options: CommandOptions;
  readonly identities: readonly string[];
}

function parse(parameters: readonly string[]): Parsed | { readonly problem: string } | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...parameters],
      allowPositionals: true,
      options: {
        key: { type: 'string', multiple: true },
        recipient: { type: 'string', multiple: true },
        'recipients-file': { type: 'string', multiple: true },
        identity: { type: 'string', multiple: true },
        name: { type: 'string' },
        stdout: { type: 'boolean' },
        ...RULE_OPTIONS,
      },
    });
    const [command = '', file, ...rest] = positionals;
    if (file === undefined || file === '' || rest.length > 0 || !Object.hasOwn(COMMANDS, command)) return undefined;
    const isOfOther = (name: string): boolean => !OPTIONS[command as keyof typeof COMMANDS].includes(name);
    const foreign = Object.keys(values).find(isOfOther);
    if (foreign !== undefined) return { problem: `${command} has no option --${foreign}; nothing was done` };
    const given = values as Record<string, string | undefined>;
    const rules = RULE_NAMES.flatMap((name): SopsRule[] => {
      const pattern = given[name.replace('_', '-')];
      return pattern === undefined ? [] : [{ name, pattern }];
    });
    if (rules.length > 1) return undefined;
    const identities =
      values.identity ?? (process.env['CONFIG_SECRETS_IDENTITY'] === undefined ? [] : [process.env['CONFIG_SECRETS_IDENTITY']]);
    const options = {
      file,
      keys: values.key ?? [],
      recipients: values.recipient ?? [],
      recipientFiles: values['recipients-file'] ?? [],
      name: values.name,
      rule: rules[0],
      toStandardOutput: values.stdout === true,
    };
    return { command: command as keyof typeof COMMANDS, options, identities };
  } catch {
    return undefined;
  }
}

function contextFor(age: AgeLibrary, identities: readonly string[]): CommandContext {
  return {
    age,
    keyring: () => keyringOf(age, identities),
    now: () => new Date(),
    edit: (name, text) => editInEditor(name, text, editor(), process.env['XDG_RUNTIME_DIR']),
    askToEditAgain,
    print: (text) => void print(text),
  };
}

/** A variable that is set to nothing counts as unset, as in a shell. */
function editor(): string {
  return [process.env['VISUAL'], process.env['EDITOR']].find((command) => command !== undefined && command.trim() !== '') ?? 'vi';
}

function keyringOf(age: AgeLibrary, paths: readonly string[]): Keyring {
  if (paths.length === 0) throw new NotEditable('no identity is known; give --identity, or set CONFIG_SECRETS_IDENTITY');
  const { identities, problems } = readIdentityPaths(age, paths);
  const [problem] = problems;
  if (problem !== undefined) throw new NotEditable(problem);
  return new Keyring(age, identities);
}

function askToEditAgain(problem: string): boolean {
  if (!process.stdin.isTTY) return false;
  process.stderr.write(`config-secrets: ${oneLine(problem)}\nEdit again? Without, nothing is written. [Y/n] `);
  const answer = Buffer.alloc(64);
  const length = readSync(0, answer);
  return !/^\s*n/i.test(answer.toString('utf8', 0, length));
}

/** Messages of the system and of libraries may quote what they were given. */
function sentenceOf(error: unknown): string {
  if (error instanceof NotEditable || error instanceof LoadFailure) return error.message;
  const { code, name } = error as NodeJS.ErrnoException;
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'the file is not valid UTF-8';
  return code === undefined ? `internal error: ${name}` : `the file cannot be read or written (${code})`;
}

function print(text: string): number {
  process.stdout.write(text);
  return EXIT_CLEAN;
}

process.exitCode = await main(process.argv.slice(2));
