import { Button, Center, Code, Skeleton, Stack, Text } from '@mantine/core';
import { useEffect, useState, type FormEvent } from 'react';
import { beginFactor, confirmFactor, type NewFactor } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { CodeInput } from '../session/code-input.tsx';
import { QrCode } from './qr-code.tsx';
import { RecoveryCodes } from './recovery-codes.tsx';

/** Shows the secret, takes the first code, shows the recovery codes. */
export function FactorSetup({ onDone }: { readonly onDone: () => void }) {
  const [factor, setFactor] = useState<NewFactor | null>(null);
  const [recovery, setRecovery] = useState<readonly string[] | null>(null);
  const [code, setCode] = useState('');
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    let isCurrent = true;
    beginFactor().then(
      (begun) => isCurrent && setFactor(begun),
      (error: unknown) => isCurrent && setFault(error),
    );
    return () => {
      isCurrent = false;
    };
  }, [attempt]);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      setRecovery(await confirmFactor(code.trim()));
    } catch (error) {
      setCode('');
      setFault(error);
    } finally {
      setBusy(false);
    }
  };

  if (recovery !== null) return <RecoveryCodes codes={recovery} onDone={onDone} />;
  if (factor === null)
    return fault === null ? (
      <Skeleton height={240} />
    ) : (
      <FaultNotice
        error={fault}
        onRetry={() => {
          setFault(null);
          setAttempt(attempt + 1);
        }}
      />
    );
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="md">
        <Text size="sm">Scan this with your authenticator app, or type the key into it.</Text>
        <Center>
          <QrCode text={factor.uri} label="QR code with the key below" />
        </Center>
        <Code block style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }} data-testid="factor-secret">
          {factor.secret}
        </Code>
        {fault !== null && <FaultNotice error={fault} />}
        <CodeInput value={code} onChange={setCode} />
        <Button type="submit" loading={busy} fullWidth>
          Confirm the code
        </Button>
      </Stack>
    </form>
  );
}
