import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { readFactor, removeFactor, renewRecoveryCodes } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Card } from '../record/card.tsx';
import { FactorSetup } from './factor-setup.tsx';
import { RecoveryCodes } from './recovery-codes.tsx';

export function FactorCard() {
  const client = useQueryClient();
  const query = useQuery({ queryKey: ['own-factor'], queryFn: ({ signal }) => readFactor(signal) });
  const [isSettingUp, setSettingUp] = useState(false);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const done = (): void => {
    setSettingUp(false);
    setCodes(null);
    void client.invalidateQueries({ predicate: ({ queryKey: [name] }) => name === 'own-factor' || name === 'own-sessions' });
  };
  const renew = async (): Promise<void> => {
    try {
      setCodes(await renewRecoveryCodes());
    } catch (error) {
      sayFailed(error);
    }
  };
  const remove = async (): Promise<void> => {
    try {
      await removeFactor();
      sayDone('One-time codes are removed.');
      done();
    } catch (error) {
      sayFailed(error);
    }
  };
  const factor = query.data;
  return (
    <Card>
      <Stack gap="md">
        <Title order={2} size="h4">
          One-time codes
        </Title>
        {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
        {factor === undefined && query.error === null && <Skeleton height={80} />}
        {codes !== null && <RecoveryCodes codes={codes} onDone={done} />}
        {isSettingUp && <FactorSetup onDone={done} />}
        {factor !== undefined && !isSettingUp && codes === null && (
          <>
            <Text size="sm">
              {factor.enabled
                ? `Each login asks for a code of your authenticator app. ${factor.recovery_codes_left} recovery codes are left.`
                : 'Your logins need only the password.'}
            </Text>
            <Group gap="sm">
              <Button variant={factor.enabled ? 'default' : 'filled'} onClick={() => setSettingUp(true)}>
                {factor.enabled ? 'Use another device' : 'Set up one-time codes'}
              </Button>
              {factor.enabled && (
                <Button variant="default" onClick={() => void renew()}>
                  New recovery codes
                </Button>
              )}
              {factor.enabled && !factor.required && (
                <Button variant="default" onClick={() => void remove()}>
                  Remove
                </Button>
              )}
            </Group>
          </>
        )}
      </Stack>
    </Card>
  );
}
