import { Button, Group, PasswordInput, Stack, Text, Textarea } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { explainSignature, type SignatureCheck as Check } from '../../../kit/src/contrib/webhooks/receiving/explain-signature.ts';
import { Notice } from '../feedback/notice.tsx';
import { Prose } from '../values/prose.tsx';

const TONES = { ok: 'good', wrong: 'bad', later: 'warning' } as const;
const WORDS = { headers: 'Headers', timestamp: 'Time', secret: 'Secret', signature: 'Signature' } as const;
const EXAMPLE = 'webhook-id: …\nwebhook-timestamp: …\nwebhook-signature: v1,…';

/** Why a receiver rejects a request. The secret is in the memory of this form alone, and gone with it. */
export function SignatureCheck() {
  const [headers, setHeaders] = useState('');
  const [body, setBody] = useState('');
  const [secret, setSecret] = useState('');
  const [checks, setChecks] = useState<readonly Check[]>([]);
  // Pages over plain HTTP have no cryptography, except those of this computer.
  if (!window.isSecureContext)
    return <Notice tone="warning">The browser checks signatures on pages with HTTPS only. Open the portal by its https address.</Notice>;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    explainSignature({ headers, body, secret }, new Date()).then(setChecks, (error: unknown) =>
      setChecks([{ what: 'signature', result: 'wrong', text: `The browser could not check it: ${String(error)}` }]),
    );
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <Textarea
          label="Headers"
          description="One in a line, as your log shows them."
          placeholder={EXAMPLE}
          autosize
          minRows={3}
          maxRows={10}
          spellCheck={false}
          autoComplete="off"
          value={headers}
          onChange={(event) => setHeaders(event.currentTarget.value)}
        />
        <Textarea
          label="Body"
          description="Exactly as it was received."
          autosize
          minRows={3}
          maxRows={16}
          spellCheck={false}
          autoComplete="off"
          value={body}
          onChange={(event) => setBody(event.currentTarget.value)}
        />
        <PasswordInput
          label="Signing secret"
          description="The secret (whsec_…) or public key (whpk_…) of the endpoint."
          autoComplete="off"
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
        />
        <Group>
          <Button type="submit">Check the signature</Button>
        </Group>
        <Stack gap="xs" role="status">
          {checks.map(({ what, result, text }) => (
            <Notice key={what} tone={TONES[result]}>
              <Text component="span" size="sm" fw={600}>
                {WORDS[what]}:{' '}
              </Text>
              <Prose text={text} />
            </Notice>
          ))}
        </Stack>
      </Stack>
    </form>
  );
}
