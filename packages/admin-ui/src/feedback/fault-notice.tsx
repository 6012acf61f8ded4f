import { Alert, Button, Group, Text } from '@mantine/core';
import { explain, isSessionLost, titleOf, toFault } from '../api/fault.ts';
import { Icon } from '../icons/icon.tsx';
import css from './feedback.module.css';
import { toned } from './toned.ts';

/** An error where its content would have been: what happened, and the way on. */
export function FaultNotice({
  error,
  title,
  onRetry,
}: {
  readonly error: unknown;
  readonly title?: string;
  readonly onRetry?: () => void;
}) {
  const fault = toFault(error);
  if (isSessionLost(fault)) return null;
  return (
    <Alert
      className={css['notice']}
      vars={toned}
      data-tone="bad"
      role="alert"
      icon={<Icon name="warning" />}
      title={title ?? titleOf(fault)}
    >
      <Group justify="space-between" align="center" gap="sm">
        <Text size="sm">{explain(fault)}</Text>
        {onRetry !== undefined && fault.status !== 404 && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
