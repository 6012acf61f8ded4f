import { Button, Group, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { endOtherSessions, endOwnSession, listOwnSessions, type OwnSession } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Card } from '../record/card.tsx';
import { deviceName } from '../values/device.ts';
import { Time } from '../values/time.tsx';

export function SessionsCard() {
  const query = useQuery({ queryKey: ['own-sessions'], queryFn: ({ signal }) => listOwnSessions(signal) });
  const end = async (work: () => Promise<unknown>, message: string): Promise<void> => {
    try {
      await work();
      sayDone(message);
      void query.refetch();
    } catch (error) {
      sayFailed(error);
    }
  };
  const sessions = query.data;
  return (
    <Card>
      <Stack gap="md">
        <Group justify="space-between">
          <Title order={2} size="h4">
            Sessions
          </Title>
          {sessions !== undefined && sessions.length > 1 && (
            <Button variant="default" size="xs" onClick={() => void end(endOtherSessions, 'All other sessions ended.')}>
              End all others
            </Button>
          )}
        </Group>
        {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
        {sessions === undefined && query.error === null && <Skeleton height={120} />}
        {sessions !== undefined && (
          <Table.ScrollContainer minWidth={480} type="native">
            <Table>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Device</Table.Th>
                  <Table.Th>Logged in</Table.Th>
                  <Table.Th>Last seen</Table.Th>
                  <Table.Th aria-label="End" />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {sessions.map((session) => (
                  <Row key={session.id} session={session} onEnd={() => void end(() => endOwnSession(session.id), 'The session ended.')} />
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        )}
      </Stack>
    </Card>
  );
}

function Row({ session, onEnd }: { readonly session: OwnSession; readonly onEnd: () => void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }} title={session.device ?? undefined}>
          {session.device === null ? 'Unknown device' : deviceName(session.device)}
        </Text>
        <Text size="xs" c="dimmed">
          {session.address ?? ''}
        </Text>
      </Table.Td>
      <Table.Td>
        <Time iso={session.created_at} />
      </Table.Td>
      <Table.Td>
        <Time iso={session.seen_at} />
      </Table.Td>
      <Table.Td>
        {session.current ? (
          <Text size="sm">This session</Text>
        ) : (
          <Button variant="subtle" size="xs" onClick={onEnd}>
            End
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
