"""Prints a Chakra execution trace as Google's reader of protobuf sees it: one line for each node.

The messages are those of mlcommons/chakra, schema/protobuf/et_def.proto, built here so that no compiler is needed.
"""

import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

INT64, INT32, UINT64, STRING, BOOL, ENUM, MESSAGE = 3, 5, 4, 9, 8, 14, 11
ONE, MANY = 1, 3
NODE_TYPES = ["INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
              "COMM_RECV_NODE", "COMM_COLL_NODE"]


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="chakra", syntax="proto3")
    kinds = file.enum_type.add(name="NodeType")
    for number, name in enumerate(NODE_TYPES):
        kinds.value.add(name=name, number=number)

    def message(name, *fields):
        out = file.message_type.add(name=name)
        for field, number, kind, label, *rest in fields:
            added = out.field.add(name=field, number=number, type=kind, label=label)
            if rest:
                added.type_name = ".chakra." + rest[0]
        return out

    message("Int64List", ("values", 1, INT64, MANY))
    attribute = message("AttributeProto", ("name", 1, STRING, ONE), ("doc_string", 2, STRING, ONE))
    attribute.oneof_decl.add(name="value")
    for field, number, kind, *rest in [("int32_val", 7, INT32), ("int64_val", 9, INT64),
                                       ("int64_list", 10, MESSAGE, "Int64List"), ("uint64_val", 13, UINT64),
                                       ("bool_val", 27, BOOL), ("string_val", 29, STRING)]:
        added = attribute.field.add(name=field, number=number, type=kind, label=ONE, oneof_index=0)
        if rest:
            added.type_name = ".chakra." + rest[0]
    message("GlobalMetadata", ("version", 1, STRING, ONE), ("attr", 2, MESSAGE, MANY, "AttributeProto"))
    message("Node", ("id", 1, UINT64, ONE), ("name", 2, STRING, ONE), ("type", 3, ENUM, ONE, "NodeType"),
            ("ctrl_deps", 4, UINT64, MANY), ("data_deps", 5, UINT64, MANY), ("start_time_micros", 6, UINT64, ONE),
            ("duration_micros", 7, UINT64, ONE), ("attr", 10, MESSAGE, MANY, "AttributeProto"))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())

    def message_class(name):
        descriptor = pool.FindMessageTypeByName("chakra." + name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(pool).GetPrototype(descriptor)

    return message_class("GlobalMetadata"), message_class("Node")


def read_length(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def value_of(attribute):
    field = attribute.WhichOneof("value")
    value = getattr(attribute, field)
    return list(value.values) if field.endswith("_list") else value


def main(path):
    metadata_class, node_class = messages()
    data = open(path, "rb").read()
    at = 0
    first = True
    while at < len(data):
        length, at = read_length(data, at)
        text = data[at:at + length]
        at += length
        if first:
            metadata = metadata_class.FromString(text)
            print("version", metadata.version, *(f"{a.name} {value_of(a)}" for a in metadata.attr))
            first = False
            continue
        node = node_class.FromString(text)
        attributes = " ".join(f"{a.name}={value_of(a)}" for a in node.attr)
        print(node.id, node.name, NODE_TYPES[node.type], list(node.data_deps), node.duration_micros, attributes)


main(sys.argv[1])
