// What messages are made of, in a file of its own so that it comes with the first one.
export { Notifications, notifications } from '@mantine/notifications';
