import { Modal, Text } from '@mantine/core';
import { LoginEntry } from './login-entry.tsx';
import type { LoginFormProps } from './login-form.tsx';

/** Over the page, which stays as it is: what was typed in it is not lost. */
export function ExpiredDialog(props: LoginFormProps) {
  return (
    <Modal
      opened
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title="Your session has ended"
      centered
      zIndex={500}
    >
      <Text size="sm" mb="md">
        Log in again to continue.
      </Text>
      <LoginEntry {...props} />
    </Modal>
  );
}
