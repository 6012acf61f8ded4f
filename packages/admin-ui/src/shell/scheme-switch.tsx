import { ActionIcon, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { Hint } from '../feedback/hint.tsx';
import { Icon, type IconName } from '../icons/icon.tsx';

const NEXT: Record<MantineColorScheme, MantineColorScheme> = { auto: 'light', light: 'dark', dark: 'auto' };
const ICONS: Record<MantineColorScheme, IconName> = { auto: 'auto', light: 'sun', dark: 'moon' };
const NAMES: Record<MantineColorScheme, string> = { auto: 'as the system', light: 'light', dark: 'dark' };

export function SchemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const label = `Colours: ${NAMES[colorScheme]}. Change to ${NAMES[NEXT[colorScheme]]}`;
  return (
    <Hint label={label}>
      <ActionIcon variant="subtle" color="gray" c="dimmed" size="lg" aria-label={label} onClick={() => setColorScheme(NEXT[colorScheme])}>
        <Icon name={ICONS[colorScheme]} />
      </ActionIcon>
    </Hint>
  );
}
