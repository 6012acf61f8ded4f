import { List, Text } from '@mantine/core';
import { formatNumber } from '../values/format.ts';

const NAMED = 5;

/** The first few by name, the others by number. */
export function TitleList({
  heading,
  targets,
}: {
  readonly heading: string;
  readonly targets: readonly { readonly id: string; readonly title: string }[];
}) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {heading}
      </Text>
      <List size="sm" style={{ overflowWrap: 'anywhere' }}>
        {targets.slice(0, NAMED).map(({ id, title }) => (
          <List.Item key={id}>{title}</List.Item>
        ))}
        {targets.length > NAMED && <List.Item>and {formatNumber(targets.length - NAMED)} more</List.Item>}
      </List>
    </div>
  );
}
