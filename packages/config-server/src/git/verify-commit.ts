import { execFile, type ExecFileException } from 'node:child_process';

export interface Signers {
  /** An allowed-signers file of ssh-keygen. */
  readonly allowedSigners: string | undefined;
  /** A GnuPG home directory that has the trusted keys and no others. */
  readonly gnupgHome: string | undefined;
}

const DEADLINE_MS = 30_000;
/** No file there: a signature of that kind then matches no signer. */
const NOBODY = '/dev/null';

/** Why git could not verify a signature, in the words of git and in ours. */
const OBSTACLES: readonly (readonly [pattern: RegExp, obstacle: string])[] = [
  [/^error: cannot run ssh-keygen/m, 'ssh-keygen cannot be run; install it'],
  [/^error: cannot run gpg/m, 'gpg cannot be run; install it'],
  [/^Unable to open allowed keys file/m, 'ssh-keygen cannot read git.allowed_signers'],
  [/^gpg: fatal: can't create /im, 'gpg cannot write to git.gnupg_home; make it writable, or write "trust-model always" into its gpg.conf'],
  [/^error: could not create temporary file/m, 'git cannot create a temporary file; set TMPDIR to a folder that the server can write'],
];

/** `good` or `bad`, or why neither could be found out. */
export type Verdict = 'good' | 'bad' | { readonly obstacle: string };

/** Whether a commit has a good signature of a trusted key. The programs that check it are named here, not by any repository. */
export function verifyCommit(
  commit: string,
  { allowedSigners, gnupgHome }: Signers,
  environment: Readonly<Record<string, string>>,
): Promise<Verdict> {
  const settings = [
    'gpg.program=gpg',
    'gpg.x509.program=false',
    'gpg.ssh.program=ssh-keygen',
    `gpg.ssh.allowedSignersFile=${allowedSigners ?? NOBODY}`,
    ...(gnupgHome === undefined ? ['gpg.program=false'] : []),
  ].flatMap((setting) => ['-c', setting]);
  const env = gnupgHome === undefined ? environment : { ...environment, GNUPGHOME: gnupgHome };
  return new Promise((resolve) => {
    const options = { env, timeout: DEADLINE_MS, killSignal: 'SIGKILL' } as const;
    execFile('git', [...settings, 'verify-commit', commit], options, (error, _stdout, stderr) => {
      resolve(error === null ? 'good' : verdictOf(error, stderr));
    });
  });
}

function verdictOf(error: ExecFileException, stderr: string): Verdict {
  if (error.killed) return { obstacle: 'git did not respond in time' };
  if (typeof error.code === 'string') return { obstacle: `git cannot be run (${error.code})` };
  const found = OBSTACLES.find(([pattern]) => pattern.test(stderr));
  return found === undefined ? 'bad' : { obstacle: found[1] };
}
