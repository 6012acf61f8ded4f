import { execFile } from 'node:child_process';

export interface Signers {
  /** An allowed-signers file of ssh-keygen. */
  readonly allowedSigners: string | undefined;
  /** A GnuPG home directory that has the trusted keys and no others. */
  readonly gnupgHome: string | undefined;
}

const DEADLINE_MS = 30_000;
/** No file there: a signature of that kind then matches no signer. */
const NOBODY = '/dev/null';

/** Whether a commit has a good signature of a trusted key. The programs that check it are named here, not by any repository. */
export function isSigned(
  commit: string,
  { allowedSigners, gnupgHome }: Signers,
  environment: Readonly<Record<string, string>>,
): Promise<boolean> {
  const settings = [
    'gpg.program=gpg',
    'gpg.x509.program=false',
    'gpg.ssh.program=ssh-keygen',
    `gpg.ssh.allowedSignersFile=${allowedSigners ?? NOBODY}`,
    ...(gnupgHome === undefined ? ['gpg.program=false'] : []),
  ].flatMap((setting) => ['-c', setting]);
  const env = gnupgHome === undefined ? environment : { ...environment, GNUPGHOME: gnupgHome };
  return new Promise((resolve) => {
    execFile('git', [...settings, 'verify-commit', commit], { env, timeout: DEADLINE_MS, killSignal: 'SIGKILL' }, (error) =>
      resolve(error === null),
    );
  });
}
